"""How large a rectangle of a product a block computes, and how many there are.

Large ones read each factor less often, small ones keep more multiprocessors busy. Where the sizes
of a call decide how many there are, a product has a launch for each of some rectangles: all but one
of them have no work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from composite.compiler.tvm.ir.dims import Dim, floordiv, product
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.strategy.context import Context

ALL_BUSY = 128
"""With so many blocks, nearly all multiprocessors of a large GPU have one."""
_BY_CALL = "by call"
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


def default_tile(result: Tensor, tiles: Mapping[str, Tile], enough: int = ALL_BUSY) -> str:
    """Return the first rectangle of which there are enough, the last one if there is none."""
    *batch, rows, columns = (d if isinstance(d, int) else _UNKNOWN for d in result.shape)
    for name, tile in tiles.items():
        blocks = product(batch) * -(-rows // tile.rows) * -(-columns // tile.columns)
        if _is_full(result, tile) and isinstance(blocks, int) and blocks >= enough:
            return name
    return [*tiles][-1]


class Ladder(NamedTuple):
    """The rectangles that a product may have, the largest first.

    Attributes:
        tiles: By their names.
        some: Those among which a call decides.
        knob: The name of the choice.
        enough: How many there must be of one.
    """

    tiles: Mapping[str, Tile]
    some: Sequence[str]
    knob: str
    enough: int = ALL_BUSY


class Rung(NamedTuple):
    """A rectangle by its name, and how many of them a call has: 0 unless the call takes them."""

    name: str
    work: Dim


def rungs(result: Tensor, ladder: Ladder, context: Context) -> list[Rung]:
    """Return the rectangles of a product's launches: that of its sizes, or some for the call's.

    A call takes the first of which it has enough, and the last one otherwise.
    """
    tiles, some, knob, enough = ladder
    chosen = context.choose(knob, [_BY_CALL, *tiles], _BY_CALL)
    if chosen == _BY_CALL and all(isinstance(d, int) for d in result.shape):
        chosen = default_tile(result, tiles, enough)
    if chosen != _BY_CALL:
        return [Rung(chosen, how_many(result, tiles[chosen]))]
    found: list[Rung] = []
    rest: Dim = 1  # whether none of those before is taken
    *larger, last = [name for name in some if _is_full(result, tiles[name])] or some[-1:]
    for name in larger:
        blocks = how_many(result, tiles[name])
        lacks = floordiv(1, floordiv(blocks, enough) + 1)
        found.append(Rung(name, blocks * rest * (1 - lacks)))
        rest = rest * lacks
    return [*found, Rung(last, how_many(result, tiles[last]) * rest)]


def how_many(result: Tensor, tile: Tile) -> Dim:
    """Return how many rectangles a result has."""
    return product(counts(result, tile))


def _is_full(result: Tensor, tile: Tile) -> bool:
    """Return whether a rectangle is not known to have half its columns empty."""
    columns = result.shape[-1]
    return not isinstance(columns, int) or tile.columns < 2 * columns
