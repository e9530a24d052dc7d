"""How rows of a product are cut into register tiles."""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.strategy.cpu.product.tile import Tile
from composite.compiler.tvm.tir.block import (
    ceil_quotient,
    index,
    maximum,
    minimum,
    quotient,
    remainder,
)

LEAST_HEIGHT = 4
_HEIGHTS = 6
"""Of tiles for rows whose number only the call knows: the least height, since fewer rows take as
long, and how many heights at most. Each is code that takes a tenth of a second to compile."""


def row_tiles(rows: Expr | int, tile: Tile) -> list[tuple[Expr | int, Tile, Expr | int]]:
    """Return (first row, tile, repetitions): few tiles, of heights as equal as can be.

    33 rows are 3 tiles of 11 where that is known. Otherwise the call says how many tiles there are
    of each of a few heights.
    """
    if not isinstance(rows, int):
        return _unknown_row_tiles(rows, tile)
    count = ceildiv(rows, tile.rows)
    small, larger = divmod(rows, count)
    parts: list[tuple[Expr | int, Tile, Expr | int]] = []
    if larger:
        parts.append((0, Tile(small + 1, tile.vectors), larger))
    if count > larger:
        parts.append((larger * (small + 1), Tile(small, tile.vectors), count - larger))
    return parts


def _unknown_row_tiles(rows: Expr, tile: Tile) -> list[tuple[Expr | int, Tile, Expr | int]]:
    """Return the tiles of each height: of the full one, or a number of steps below it.

    What full tiles have more rows than there are is taken off in steps, first one of each tile.
    """
    step = ceildiv(tile.rows, _HEIGHTS)
    heights = range(tile.rows, min(LEAST_HEIGHT, tile.rows) - 1, -step)
    count = index(ceil_quotient(rows, tile.rows))
    steps = minimum(quotient(count * tile.rows - rows, step), count * (len(heights) - 1))
    tiles = maximum(count, 1)
    each, more = index(quotient(steps, tiles)), index(remainder(steps, tiles))
    full = count - more
    parts: list[tuple[Expr | int, Tile, Expr | int]] = [
        (0, Tile(tile.rows, tile.vectors), tirx.Select(tirx.EQ(each, index(0)), full, index(0)))
    ]
    for below, height in enumerate(heights[1:], 1):
        is_lower = tirx.EQ(each, index(below - 1))  # then the tiles in front are one step higher
        lower = tirx.Select(is_lower, more, index(0))
        repeat = tirx.Select(tirx.EQ(each, index(below)), full, lower)
        first = tirx.Select(is_lower, full * (height + step), index(0))
        parts.append((first, Tile(height, tile.vectors), repeat))
    return parts
