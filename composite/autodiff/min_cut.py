"""The cheapest cut of a network: Dinic's algorithm.

Not for what the network stands for: see `residuals`.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Hashable, Mapping
from typing import TypeVar

_N = TypeVar("_N", bound=Hashable)


def source_side(edges: Mapping[tuple[_N, _N], int], source: _N, sink: _N) -> set[_N]:
    """The nodes on the source's side of a cut of least capacity: of several, the smallest side.

    `edges` maps (from, to) to a capacity: a large number where no cut is to go through.
    """
    rest: dict[_N, dict[_N, int]] = {source: {}, sink: {}}
    for (a, b), capacity in edges.items():
        into = rest.setdefault(a, {})
        into[b] = into.get(b, 0) + capacity
        rest.setdefault(b, {}).setdefault(a, 0)
    while sink in (levels := _levels(rest, source)):
        _fill(rest, levels, source, sink)
    return set(levels)


def _levels(rest: Mapping[_N, Mapping[_N, int]], source: _N) -> dict[_N, int]:
    """How far each node is from the source, of those that more can flow to."""
    levels = {source: 0}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for other, capacity in rest[node].items():
            if capacity > 0 and other not in levels:
                levels[other] = levels[node] + 1
                waiting.append(other)
    return levels


def _fill(rest: dict[_N, dict[_N, int]], levels: Mapping[_N, int], source: _N, sink: _N) -> None:
    """Lets flow what can on shortest paths; `rest` is what can flow besides."""
    onward = {
        node: iter([b for b in rest[node] if levels.get(b) == level + 1])
        for node, level in levels.items()
    }
    ahead = {node: next(onward[node], None) for node in levels}
    path = [source]
    while path:
        node = path[-1]
        if node == sink:
            steps = list(itertools.pairwise(path))
            flow = min(rest[a][b] for a, b in steps)
            for a, b in steps:
                rest[a][b] -= flow
                rest[b][a] += flow
            full = next(k for k, (a, b) in enumerate(steps) if rest[a][b] == 0)
            del path[full + 1 :]
            continue
        other = ahead[node]
        if other is None:
            path.pop()
            if path:
                ahead[path[-1]] = next(onward[path[-1]], None)
        elif rest[node][other] > 0:
            path.append(other)
        else:
            ahead[node] = next(onward[node], None)
