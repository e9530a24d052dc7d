"""Tasks of a product whose second factor is packed once: no thread has much more than another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.strategy.cpu.product.blocking import Blocking, Sizes, choose_blocking
from composite.compiler.tvm.strategy.cpu.product.tile import Tile
from composite.compiler.tvm.target import Target

LANES = 16


def blocking(
    rows: int, depth: int, columns: int, tile: Tile, cores: int, *, by_rows: bool = False
) -> Blocking:
    target = Target.of("x86-64-v4", cores)
    context: Any = SimpleNamespace(
        target=target,
        machine=target.machine,
        trips=None,
        choose=lambda _name, _options, default: default,
    )
    sizes = Sizes.of((), columns, LANES, (rows, rows), (depth, depth))
    return choose_blocking(sizes, tile, LANES, context, k_first=True, packed=True, by_rows=by_rows)


def largest_share(rows: int, columns: int, cut: Blocking, cores: int) -> float:
    """Rows times vectors of the thread with the most, beside an equal share; one task at a time."""
    assert isinstance(cut.rows, int)
    vectors = ceildiv(columns, LANES)
    threads = [0] * cores
    for first in range(0, vectors, cut.group):
        for row in range(0, rows, cut.rows):
            work = min(cut.group, vectors - first) * min(cut.rows, rows - row)
            threads[threads.index(min(threads))] += work
    return max(threads) / (rows * vectors / cores)


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("tile", [Tile(12, 2), Tile(8, 3), Tile(6, 4)], ids=str)
@pytest.mark.parametrize(
    "shape",
    [
        (288, 576, 96),  # three tasks for two threads, before
        (288, 384, 64),
        (288, 96, 576),
        (72, 576, 160),
        (72, 960, 160),
        (1152, 128, 512),
        (4608, 64, 256),
    ],
    ids=str,
)
def test_shares_are_even(shape: tuple[int, int, int], tile: Tile, cores: int) -> None:
    rows, depth, columns = shape
    cut = blocking(rows, depth, columns, tile, cores)
    assert largest_share(rows, columns, cut, cores) <= 1.2


def test_few_rows_are_not_cut() -> None:
    cut = blocking(8, 1024, 1024, Tile(8, 3), 2)
    assert (cut.rows, cut.fixed_rows) == (8, 8)


@pytest.mark.parametrize(
    ("shape", "group"),
    [
        ((4096, 128, 512), 32),  # all columns
        ((4096, 128, 600), 20),  # two groups: beside their panels, the sums have to stay near
        ((4096, 256, 512), 16),  # as deep as that, the cache holds the panels of 256 columns
        ((512, 128, 512), 16),  # too few rows for all threads
    ],
)
def test_an_epilogue_goes_over_long_rows(shape: tuple[int, int, int], group: int) -> None:
    assert blocking(*shape, Tile(12, 2), 2, by_rows=True).group == group
    assert blocking(*shape, Tile(12, 2), 2).group <= 16
