"""About how long stages take, where a strategy decides what becomes of several of them."""

from __future__ import annotations

from collections.abc import Iterable

from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.cpu.product.blocking import guess
from composite.compiler.tvm.strategy.cpu.product.product import float_product


def stage_cycles(stages: Iterable[Stage]) -> int:
    """Return the cycles of stages on one thread, roughly; sizes of the call are guessed."""
    total = 0
    for stage in stages:
        found = float_product(stage)
        size = 1
        for dim in stage.shape:
            size *= guess(dim)
        total += size * (guess(found.depth) if found is not None else 16) // 16
    return total
