"""Which nodes run in TensorFlow together: as few calls as the order of nodes allows.

The nodes of one stage are TensorFlow's, one call, and then regions that need no later call. A path
that leaves a call through a region ends in a later stage: calls are convex, there are no cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from composite.hybrid.graph import Graph


@dataclass
class Stage:
    """Nodes by name, each behind those that it needs.

    Attributes:
        calls: what TensorFlow runs in one call.
        regions: what kernels run after that.
    """

    calls: list[str] = field(default_factory=list)
    regions: list[str] = field(default_factory=list)


def stages(graph: Graph) -> list[Stage]:
    """All nodes of a graph, in stages."""
    level: dict[str, int] = {}
    found: list[Stage] = []
    for name in graph.nodes:
        is_region = bool(graph.region(name))
        level[name] = max(
            (
                level[other] + (bool(graph.region(other)) and not is_region)
                for other in graph.before(name)
            ),
            default=0,
        )
        while len(found) <= level[name]:
            found.append(Stage())
        (found[level[name]].regions if is_region else found[level[name]].calls).append(name)
    return found
