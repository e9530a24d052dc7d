"""Expansions are found again by what they read, and are bounded in number."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.runtime import kernel_support as k
from tests.runtime.programs import Program, expand

Unique = Callable[[str], str]


def rows(op: str) -> None:
    """An op whose expansion depends on the number of rows alone."""
    p = Program(op, ["x: float"], ["k: int = 0"], ["o: float"])
    p.returns(o=p.binary("truediv", p.call("Tanh", x="x"), p.dim("x", 0)))
    p.register()


def expansions() -> int:
    return int(k.stats()["expansions"])


def test_only_what_was_read_counts(unique: Unique) -> None:
    op = unique("CacheRows")
    rows(op)
    before = expansions()
    for shape in [(3, 4), (3, 5), (3, None), (3, 4), (3, 9)]:
        expand(op, [shape])
    assert expansions() == before + 1
    expand(op, [(4, 4)])
    expand(op, [(None, 4)])
    expand(op, [(None, 5)])
    assert expansions() == before + 3
    expand(op, [(3, 4)], k=1)
    assert expansions() == before + 4


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_ten_thousand_sizes_stay_small(unique: Unique) -> None:
    op = unique("CacheBound")
    rows(op)
    for n in range(1, 1001):
        expand(op, [(n, 4)])
    after_thousand, before = resident(), expansions()
    for n in range(1001, 10001):
        expand(op, [(n, 4)])
    assert expansions() == before + 9000
    assert resident() - after_thousand < 8 << 20
    expand(op, [(10000, 4)])
    assert expansions() == before + 9000
    expand(op, [(1, 4)])  # least recently used: dropped long ago
    assert expansions() == before + 9001


def test_threads_share_one_expansion(unique: Unique) -> None:
    op = unique("CacheThreads")
    rows(op)
    names: list[Any] = []

    def run() -> None:
        for n in range(1, 40):
            names.append((n, expand(op, [(n, 4)]).function[0].signature.name))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 39
