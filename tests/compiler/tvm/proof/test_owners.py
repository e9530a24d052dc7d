"""Which tasks own what they store, and that tasks whose elements overlap are not said to."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest

from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.proof.divided import without_remainders
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.owners import Owners, Path


def counted(integers: Integers, **counts: int) -> list[Dim]:
    """Counters of loops, each within the one before."""
    counters = [integers.atom(name) for name in counts]
    for counter, count in zip(counters, counts.values(), strict=True):
        integers.learn(counter)
        integers.learn(count - 1 - counter)
    return list(counters)


def shared(*indices: Callable[..., Dim], strides: Sequence[Dim] = (), **counts: int) -> set[Path]:
    """The paths that several accesses of one phase have in common; none if tasks may meet."""
    integers = Integers()
    counters = counted(integers, **counts)
    paths: set[Path] = set()
    for index in indices:
        paths, _ = Owners(integers, "task").paths(index(integers, *counters), paths, strides)
        if not paths:
            break
    return paths


def _row(at: int, share: int) -> Callable[..., Dim]:
    """A row of a tile of 6 in a block of 64; each task has columns of a row of 512."""
    return lambda _, task, block, tile, panel: (
        512 * at + 32768 * block + 3072 * tile + share * task + 16 * panel
    )


@pytest.mark.parametrize(("share", "panels", "owned"), [(128, 8, True), (112, 8, False)])
def test_columns_of_rows_in_tiles_are_a_tasks(share: int, panels: int, owned: bool) -> None:
    """Blocks of tiles overrun: a row, not a block, is what the tasks divide."""
    rows = [_row(at, share) for at in range(6)]
    assert bool(shared(*rows, task=4, block=2, tile=11, panel=panels)) == owned


@pytest.mark.parametrize(
    ("pitch", "strides", "owned"), [(65, [65], True), (65, [], False), (60, [60], False)]
)
def test_rows_of_a_task_are_rows_of_the_buffer(
    pitch: int, strides: Sequence[Dim], owned: bool
) -> None:
    """The first of 16 rows shows the stride of a task's rows and of its columns, not its own."""

    def row(at: int) -> Callable[..., Dim]:
        def index(integers: Integers, task: Dim, lane: Dim) -> Dim:
            chunk, group = integers.remainder(task, 2), integers.quotient(task, 2)
            assert chunk is not None and group is not None
            return 16 * pitch * chunk + pitch * at + 8 * group + lane

        return index

    found = shared(*map(row, range(16)), strides=strides, task=16, lane=8)
    assert bool(found) == owned


def test_a_row_that_the_columns_pass_is_not_one() -> None:
    assert not shared(*[_row(at, 128) for at in range(6)], task=5, block=2, tile=11, panel=8)


def test_rows_that_begin_elsewhere_are_not_the_same_columns() -> None:
    shifted = lambda *given: _row(0, 128)(*given) + 128  # noqa: E731
    assert not shared(_row(0, 128), shifted, task=4, block=2, tile=11, panel=8)


def _fused(share: int, width: int) -> Callable[..., Dim]:
    """Rows of an image [8, 32, 32], whose three counters are digits of one."""

    def index(integers: Integers, task: Dim, r: Dim, v: Dim) -> Dim:
        row = task * share + r
        image, above = integers.quotient(row, 1024), integers.quotient(row, 32)
        assert image is not None
        assert above is not None
        y, x = integers.remainder(above, 32), integers.remainder(row, 32)
        assert y is not None
        assert x is not None
        return image * (1024 * width) + y * (32 * width) + x * width + v

    return index


@pytest.mark.parametrize(
    ("share", "width", "owned"), [(128, 64, True), (120, 64, False), (128, 60, False)]
)
def test_digits_of_a_fused_index_are_put_together(share: int, width: int, owned: bool) -> None:
    assert bool(shared(_fused(share, width), task=64, r=128, v=64)) == owned


@pytest.mark.parametrize(("passed", "owned"), [(0, True), (1, False)])
def test_rows_of_a_task_are_those_of_a_fused_index(passed: int, owned: bool) -> None:
    """A task has some blocks of some rows; how many of each is made of the sizes of the call."""
    integers = Integers()
    width, depth = integers.atom("width"), integers.atom("depth")
    for size in (width, depth):
        integers.learn(size - 1)
    rows = integers.maximum(1, integers.minimum(8, depth))
    blocks = integers.maximum(1, integers.minimum(9, depth - 7))
    task, block, row = (integers.atom(name) for name in ("task", "block", "row"))
    for counter, count in ((task, width), (block, blocks + passed), (row, rows)):
        integers.learn(counter)
        integers.learn(count - 1 - counter)
    fused = (task * blocks + block) * rows + row
    y, x = integers.quotient(fused, width), integers.remainder(fused, width)
    assert y is not None
    assert x is not None
    paths, _ = Owners(integers, "task").paths(y * width + x, ())
    assert bool(paths) == owned


def test_a_quotient_of_a_quotient_is_one() -> None:
    integers = Integers()
    x, y = counted(integers, x=100, y=100)
    inner = integers.quotient(x, 3)
    assert inner is not None
    outer = integers.quotient(inner + y, 5)
    assert outer is not None
    assert without_remainders(integers, outer) == integers.quotient(x + y * 3, 15)


def test_a_stride_that_differs_by_task_tells_nothing() -> None:
    """Tasks 1 and 2 of three store at task * (3 - task) = 2."""
    assert not shared(lambda _, task: task * (task * -1 + 3), task=3)


@pytest.mark.parametrize(("vectors", "owned"), [(2, True), (3, False)])
def test_a_minimum_that_all_tasks_share_moves_no_vector(vectors: int, owned: bool) -> None:
    """Tasks have a block of rows and 16 columns each; the rows of a block are the fewer of two."""
    integers = Integers()
    columns, some, others, blocks = (integers.atom(n) for n in ("columns", "a", "b", "blocks"))
    integers.learn(columns - 8)
    share = integers.minimum(some, others)
    for size in (share, blocks):
        integers.learn(size - 1)
    task, row, vector = (integers.atom(name) for name in ("task", "row", "vector"))
    for counter in (task, row, vector):
        integers.learn(counter)
    integers.learn(share - 1 - row)
    integers.learn(vector * -1 + (vectors - 1))
    group, block = integers.quotient(task, blocks), integers.remainder(task, blocks)
    assert group is not None
    assert block is not None
    begin = integers.minimum(group * 16 + vector * 8, columns - 8)
    index = (block * share + row) * columns + begin + integers.lane(8)
    paths, _ = Owners(integers, "task").paths(index, ())
    assert bool(paths) == owned


def test_a_digit_that_is_0_at_an_access_is_the_same_one() -> None:
    integers = Integers()
    task, column = counted(integers, task=4, column=16)
    paths, _ = Owners(integers, "task").paths(task * 16 + column, ())
    assert paths
    with integers.scope():
        integers.learn(task * -1)
        assert Owners(integers, "task").paths(column, paths)[0] == paths
        assert not Owners(integers, "task").paths(column + 16, paths)[0]
    assert not Owners(integers, "task").paths(column, paths)[0]


class Piece(NamedTuple):
    """Columns that a task has of a row, in pieces; it stores the vector at the end of its piece."""

    share: int  # from one piece to the next
    most: int  # columns of a piece
    lanes: int
    times: int = 1  # by this the rest of a row is counted wrongly
    shift: int = 0

    def owned(self) -> bool:
        integers = Integers()
        n, rows = integers.atom("n"), integers.atom("rows")
        integers.learn(n - 1)
        pieces = integers.quotient(n + (self.share - 1), self.share)
        assert pieces is not None
        task = integers.atom("task")
        integers.learn(task)
        integers.learn(rows * pieces - 1 - task)
        row, piece = integers.quotient(task, pieces), integers.remainder(task, pieces)
        assert row is not None
        assert piece is not None
        start = piece * self.share
        count = integers.minimum(self.most, n - start * self.times)
        integers.learn(count - 1)
        end = row * n + start + count + self.shift
        paths, _ = Owners(integers, "task").paths(end - self.lanes + integers.lane(self.lanes), ())
        return bool(paths)

    def meets(self, n: int) -> bool:
        """Return whether two tasks store one element with vectors that end before their rows."""
        seen: dict[int, int] = {}
        pieces = -(-n // self.share)
        for task in range(3 * pieces):
            start = task % pieces * self.share
            end = task // pieces * n + start + self.most + self.shift
            if self.most > n - start * self.times:
                continue  # moved back
            for element in range(end - self.lanes, end):
                if seen.setdefault(element, task) != task:
                    return True
        return False


@pytest.mark.parametrize(
    ("piece", "owned"),
    [
        (Piece(16, 16, 8), True),
        (Piece(16, 12, 8), True),
        (Piece(16, 20, 8), False),
        (Piece(16, 16, 20), False),
        (Piece(16, 16, 8, times=2), False),
        (Piece(16, 16, 8, shift=4), False),
    ],
)
def test_a_vector_at_the_end_of_a_piece_is_its_tasks(piece: Piece, owned: bool) -> None:
    assert piece.owned() == owned


def test_pieces_that_meet_are_nobodys() -> None:
    """Random pieces: those that are a task's own do not meet, whatever the size of a row."""
    draw = random.Random(3)
    found = set()
    for _ in range(60):
        lanes = draw.choice((2, 4, 8))
        piece = Piece(
            draw.randint(4, 16), draw.randint(4, 20), lanes, draw.randint(1, 2), draw.randint(-4, 4)
        )
        owned = piece.owned()
        assert not (owned and any(map(piece.meets, range(1, 60)))), piece
        found.add(owned)
    assert found == {False, True}
