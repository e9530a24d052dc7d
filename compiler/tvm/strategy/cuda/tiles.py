"""How large a rectangle of a product a block computes, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from composite.compiler.tvm.ir.dims import Dim, floordiv, product
from composite.compiler.tvm.ir.tensor import Tensor

_ENOUGH_BLOCKS = 128
"""With so many blocks, nearly all multiprocessors of a large GPU have one."""
_UNKNOWN = 1024
"""What a size that the call decides is taken for."""


class Tile(Protocol):
    """A rectangle."""

    @property
    def rows(self) -> int:
        """Of the result."""

    @property
    def columns(self) -> int:
        """Of the result."""


def counts(result: Tensor, tile: Tile) -> tuple[Dim, ...]:
    """Return how many matrices there are in each dimension, and rectangles down and along one."""
    *batch, rows, columns = result.shape
    down = floordiv(rows + (tile.rows - 1), tile.rows)
    along = floordiv(columns + (tile.columns - 1), tile.columns)
    return (*batch, down, along)


def default_tile(result: Tensor, tiles: Mapping[str, Tile]) -> str:
    """Return the first rectangle of which there are enough, the last one if there is none.

    A rectangle of which half the columns would be empty is left out.
    """
    *batch, rows, columns = (d if isinstance(d, int) else _UNKNOWN for d in result.shape)
    names = [name for name, tile in tiles.items() if tile.columns < 2 * columns]
    for name in names:
        tile = tiles[name]
        blocks = product(batch) * -(-rows // tile.rows) * -(-columns // tile.columns)
        if isinstance(blocks, int) and blocks >= _ENOUGH_BLOCKS:
            return name
    return [*tiles][-1]
