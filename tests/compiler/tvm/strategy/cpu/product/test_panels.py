"""Constant factors, packed once: right for every layout, and only where something is packed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.machine import BFLOAT16
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.read.cells import over

LEVELS = ["x86-64-v2", "x86-64-v3"]


def slice_a_trip(x: Any, w: Any) -> Any:
    """Layers whose weights lie in one tensor."""
    (y,) = over(4, lambda t, y: (tf.tanh(y @ w[t]),), x)
    return y


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def dense(transpose: bool) -> Any:
    def function(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, w, transpose_b=transpose) + b)

    return function


@pytest.mark.parametrize("transpose", [False, True], ids=["KN", "NK"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(6, 16, 16), (33, 17, 129), (5, 300, 77), (100, 700, 40), (7, 40, 3)]
)
def test_a_packed_filter_gives_what_the_filter_gives(
    compiler: Any, m: int, k: int, n: int, transpose: bool
) -> None:
    w = normal(n, k) if transpose else normal(k, n)
    loaded = compiler.compare(
        dense(transpose), normal(m, k), w, normal(n), rtol=2e-5, atol=1e-4, constants=[1]
    )
    (packed,) = loaded.kernel.packed
    assert packed.source == 1
    assert packed.elements >= k * n


def test_a_packed_filter_is_read_for_a_single_row_alone(compiler: Any) -> None:
    """Of which there may be one only where the call decides how many there are."""
    w, b = normal(64, 128), normal(128)

    def blocks(x: Any, w: Any, b: Any) -> Any:
        return dense(transpose=False)(tf.reshape(x, [-1, 64]), w, b)

    for function, x, is_read in (
        (dense(transpose=False), normal(8, 64), False),
        (blocks, normal(3, 4, 64), False),
        (dense(transpose=False), normal(3, 64), True),
    ):
        shape = ["s0", *x.shape[1:]] if x.shape[0] == 3 else list(x.shape)
        shapes = [shape, list(w.shape), list(b.shape)]
        loaded = compiler.compile(function, [x, w, b], shapes=shapes, constants=[1])
        assert len(loaded.kernel.packed) == 1
        assert [loaded.kernel.reads(k) for k in range(3)] == [True, is_read, True]


def test_pieces_of_k(compiler: Any) -> None:
    """A factor that lies as [K, N] may be packed in pieces: here three, of 112 steps and less."""
    arrays = [normal(40, 333), normal(333, 70), normal(70)]
    choices = {"0.gemm.cut": "wide", "0.gemm.wide.depth": 128}
    loaded = compiler.compile(dense(transpose=False), arrays, constants=[1], choices=choices)
    (packed,) = loaded.kernel.packed
    assert packed.elements % (3 * 113) == 0  # with one step more than is used
    (found,) = loaded(arrays, [(40, 70)], [np.dtype(np.float32)])
    np.testing.assert_allclose(found, dense(transpose=False)(*arrays), rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 50, 131])
def test_a_batch_that_the_call_decides(compiler: Any, rows: int) -> None:
    loaded = compiler.compile(
        dense(transpose=True),
        [normal(8, 70), normal(90, 70), normal(90)],
        [("s0", 70), (90, 70), (90,)],
        constants=[1],
    )
    x, w, b = normal(rows, 70), normal(90, 70), normal(90)
    (found,) = loaded([x, w, b], [(rows, 90)], [np.dtype(np.float32)])
    np.testing.assert_allclose(found, dense(transpose=True)(x, w, b), rtol=2e-5, atol=1e-4)


def test_what_is_made_of_the_constant_alone_is_packed(compiler: Any) -> None:
    def function(x: Any, w: Any) -> Any:
        return tf.matmul(x, tf.transpose(tf.tanh(w) * 2.0))

    loaded = compiler.compare(
        function, normal(9, 20), normal(31, 20), rtol=2e-5, atol=1e-5, constants=[1]
    )
    assert loaded.kernel.packed


def test_batches_of_matrices(compiler: Any) -> None:
    loaded = compiler.compare(
        tf.matmul, normal(2, 3, 9, 20), normal(3, 20, 31), rtol=2e-5, atol=1e-5, constants=[1]
    )
    assert loaded.kernel.packed
    compiler.compare(
        tf.matmul, normal(2, 3, 9, 20), normal(2, 1, 20, 31), rtol=2e-5, atol=1e-5, constants=[1]
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_other_floats(compiler: Any, dtype: Any) -> None:
    tolerance = {np.float64: 1e-13, np.float16: 2e-3}.get(dtype, 2e-2)
    x, w = normal(9, 24, dtype=dtype), normal(24, 33, dtype=dtype)
    exact = np.asarray(x, np.float64) @ np.asarray(w, np.float64)
    loaded = compiler.compile(tf.matmul, [x, w], constants=[1])
    (found,) = loaded([x, w], [(9, 33)], [np.dtype(dtype)])
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=tolerance, atol=tolerance * 5)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level(compiler: Any, level: str) -> None:
    compiler.compare(
        dense(transpose=True), normal(20, 50), normal(30, 50), normal(30),
        rtol=2e-5, atol=1e-4, constants=[1], target=backend.Target.of(level, 2),
    )  # fmt: skip


def test_two_constants_of_one_kernel(compiler: Any) -> None:
    def function(x: Any, w: Any, v: Any) -> Any:
        return tf.matmul(tf.nn.relu(tf.matmul(x, w)), v)

    loaded = compiler.compare(
        function, normal(9, 20), normal(20, 31), normal(31, 8),
        rtol=2e-5, atol=1e-4, constants=[1, 2],
    )  # fmt: skip
    assert [p.source for p in loaded.kernel.packed] == [1, 2]


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda x, w: x + w, [normal(9, 20), normal(9, 20)]),
        (lambda x, w: tf.reduce_sum(x * w, -1), [normal(9, 20), normal(9, 20)]),
        (slice_a_trip, [normal(3, 24), normal(4, 24, 24)]),
    ],
    ids=["sum", "sums of products", "a slice a trip"],
)
def test_without_anything_to_pack_there_is_no_kernel_of_its_own(
    compiler: Any, function: Any, arrays: list[np.ndarray]
) -> None:
    with pytest.raises(backend.NotCovered, match="read where they lie"):
        compiler.compile(function, arrays, constants=[1])


def written(
    function: Any, shapes: Sequence[tuple[int, ...]], level: str, dtype: Any = tf.float32
) -> backend.Written:
    """A kernel whose second input is constant."""
    library = library_of(function, [tf.TensorSpec(s, dtype) for s in shapes])
    return backend.write(library, shapes, target=backend.Target.of(level, 2), constants=(1,))


def test_a_factor_of_one_row_is_packed_unless_it_is_too_large_to_be_held_twice() -> None:
    packed = written(tf.matmul, [(1, 1024), (1024, 4096)], "x86-64-v3").module.packed
    assert [p.source for p in packed] == [1]
    with pytest.raises(backend.NotCovered, match="read where they lie"):
        written(tf.matmul, [(1, 1024), (1024, 16384)], "x86-64-v3")


def test_one_row_of_a_batch_that_the_call_decides_reads_the_factor_as_it_lies() -> None:
    library = library_of(
        dense(transpose=True), [tf.TensorSpec(s) for s in [(None, 70), (90, 70), 90]]
    )
    target = backend.Target.of("x86-64-v3", 2)
    loops = backend.write(library, [("s0", 70), (90, 70), (90,)], target=target, constants=(1,))
    assert loops.module.packed
    assert "0.dots.task" in loops.choices


def test_a_factor_of_one_row_is_not_widened_at_rest() -> None:
    shapes = [(1, 64), (64, 96)]
    with pytest.raises(backend.NotCovered, match="read where they lie"):
        written(tf.matmul, shapes, "x86-64-v4", dtype=tf.bfloat16)
    assert written(tf.matmul, shapes, BFLOAT16, dtype=tf.bfloat16).module.packed


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "tasks"),
    [(576, 144, 24, 4), (2304, 16, 96, 12), (9, 960, 320, 10), (36, 384, 64, 2), (40, 250, 60, 2)],
)
def test_two_threads_have_equal_shares(rows: int, depth: int, columns: int, tasks: int) -> None:
    """Of rows, or of panels where rows are few; tasks that fill a cache would be an odd number.

    Where there is but one panel, rows are shared though they are few.
    """
    loops = written(tf.matmul, [(rows, depth), (depth, columns)], "x86-64-v4")
    assert re.findall(
        r"T\.parallel\(T\.int64\((\d+)\)\)", str(loops.module.functions["kernel"])
    ) == [str(tasks)]


def prefetches(function: Any, shapes: list[tuple[int, ...]], constants: tuple[int, ...]) -> int:
    library = library_of(function, [tf.TensorSpec(s) for s in shapes])
    level = backend.Target.of("x86-64-v3", 2)
    written = backend.write(library, shapes, target=level, constants=constants)
    return str(written.module.functions).count("prefetch")


def test_the_next_panel_is_asked_for_where_it_comes_from_afar() -> None:
    shapes = [(8, 256), (256, 512), (512,)]
    assert prefetches(dense(transpose=False), shapes, constants=(1,))
    assert not prefetches(dense(transpose=False), shapes, constants=())  # packed by the task


@pytest.mark.parametrize(
    ("rows", "depth", "asks"), [(1, 256, False), (1, 4096, True), (5, 256, True)]
)
def test_the_panels_of_a_single_tile_are_asked_for_a_little_ahead(
    rows: int, depth: int, asks: bool
) -> None:
    """Few rows of what an L2 cache holds read several streams instead."""
    shapes = [(rows, depth), (depth, 512), (512,)]
    assert bool(prefetches(dense(transpose=False), shapes, constants=(1,))) == asks


def tile_of(rows: int, columns: int) -> tuple[int, int]:
    """Height and vectors of the tile of a product with a constant of 256 x columns."""
    shapes = [(rows, 256), (256, columns), (columns,)]
    tile = written(dense(transpose=False), shapes, "x86-64-v4").choices["0.gemm.tile"]
    height, vectors = map(int, str(tile).removeprefix("columns ").split("x"))
    return min(rows, height), vectors


@pytest.mark.parametrize("rows", range(1, 9))
def test_ten_sums_or_more_hide_a_latency(rows: int) -> None:
    height, vectors = tile_of(rows, 512)
    assert height * vectors >= 10


def test_panels_of_few_rows_waste_little() -> None:
    assert tile_of(1, 512) == (1, 16)
    assert tile_of(2, 512) == (2, 8)  # of 32 vectors, 10 would make 40
    assert tile_of(1, 300) == (1, 10)  # of 19 vectors


@pytest.mark.parametrize(
    ("depth", "columns", "tasks"), [(256, 300, "inline"), (800, 800, "parallel")]
)
def test_bytes_decide_on_threads_for_few_rows(depth: int, columns: int, tasks: str) -> None:
    """800 x 800 are 20,000 cycles of arithmetic, and 80,000 of reading."""
    shapes = [(1, depth), (depth, columns), (columns,)]
    assert written(dense(transpose=False), shapes, "x86-64-v4").choices["0.tasks"] == tasks


def test_two_threads_have_equal_shares_of_the_panels_of_a_row() -> None:
    shapes = [(1, 1024), (1024, 768), (768,)]  # of 48 vectors, panels of 16 would be three
    choices = written(dense(transpose=False), shapes, "x86-64-v4").choices
    assert (choices["0.gemm.tile"], choices["0.tasks"]) == ("columns 1x12", "parallel")
