"""Register tiles: how often their steps are written."""

from __future__ import annotations

import pytest

from composite.compiler.tvm import Target
from composite.compiler.tvm.strategy.cpu.product.tile import Tile, steps_at_once, tiles

CORES = 2


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_a_step_of_a_tile_that_fills_the_registers_is_written_once(level: str) -> None:
    found = {steps_at_once(tile) for tile in tiles(Target.of(level, CORES)) if tile.vectors > 1}
    assert found == {1}


def test_steps_of_small_tiles_outweigh_the_loop_together() -> None:
    assert [steps_at_once(Tile(rows, 2)) for rows in (1, 2, 3, 6)] == [4, 4, 2, 1]
