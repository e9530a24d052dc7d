"""How rows are cut into tiles."""

from __future__ import annotations

import pytest
from tvm import sym, tirx

from composite.compiler.tvm.strategy.cpu.product.row_tiles import row_tiles
from composite.compiler.tvm.strategy.cpu.product.tile import Tile


def cut(rows: int, tile: Tile, *, known: bool) -> list[tuple[int, int, int]]:
    """First row, height and number of the tiles of each height that there are."""
    analyzer = sym.Analyzer()

    def number(value: object) -> int:
        return value if isinstance(value, int) else int(analyzer.simplify(value))

    parts = row_tiles(rows if known else tirx.const(rows, "int64"), tile)
    numbers = [(number(first), part.rows, number(count)) for first, part, count in parts]
    return [part for part in numbers if part[2]]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("height", [1, 3, 4, 6, 8, 10, 12, 16, 24])
def test_tiles_cover_the_rows(height: int, known: bool) -> None:
    for rows in range(known, 6 * height + 2):
        parts = cut(rows, Tile(height, 2), known=known)
        end = 0
        for first, own, count in parts:
            assert first == end and own <= height and count > 0
            end += own * count
        assert end >= rows
        assert sum(count for _, _, count in parts) == -(-rows // height)
        if known:
            assert end == rows


@pytest.mark.parametrize(
    ("rows", "height", "wanted"),
    [
        (0, 6, []),
        (2, 6, [(0, 4, 1)]),  # fewer take as long
        (5, 6, [(0, 5, 1)]),
        (8, 6, [(0, 4, 2)]),
        (16, 6, [(0, 6, 1), (6, 5, 2)]),
        (64, 6, [(0, 6, 9), (54, 5, 2)]),
        (13, 12, [(0, 8, 1), (8, 6, 1)]),
        (33, 12, [(0, 12, 2), (24, 10, 1)]),
        (30, 24, [(0, 16, 2)]),
    ],
)
def test_tiles_of_rows_that_the_call_says_are_as_equal_as_steps_allow(
    rows: int, height: int, wanted: list[tuple[int, int, int]]
) -> None:
    assert cut(rows, Tile(height, 2), known=False) == wanted


def test_few_heights_are_written() -> None:
    for height in range(1, 33):
        assert len(row_tiles(tirx.Var("rows", "int64"), Tile(height, 1))) <= 6
