"""Few rows: dot products along K, or scaled rows along N."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm import Target
from tests.compiler.tvm.conftest import library_of


def layer(transpose_b: bool) -> Any:
    def function(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w, transpose_b=transpose_b), b))

    return function


def check(compiler: Any, sizes: tuple[int, int, int], tb: bool, strategy: str, dtype: Any) -> Any:
    m, k, n = sizes
    random = np.random.default_rng(m + k + n)
    shapes = [(m, k), (n, k) if tb else (k, n), (n,)]
    arrays = [random.uniform(-1, 1, s).astype(dtype) for s in shapes]
    exact = layer(tb)(*[tf.constant(a.astype(np.float64)) for a in arrays]).numpy()
    loaded = compiler.compile(layer(tb), arrays)
    short = min(n, k if tb else n) < Target.host().lanes * 4 // np.dtype(dtype).itemsize
    assert loaded.kernel.strategy == ("gemm" if short else strategy)  # less than a vector
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    for loaded.tasks in (1, 3):
        (result,) = loaded(arrays, [(m, n)], [arrays[0].dtype])
        np.testing.assert_allclose(result, exact, rtol=2 * epsilon, atol=(k + 4) * epsilon)
    return loaded


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize(("k", "n"), [(8, 8), (13, 9), (20, 30), (64, 64), (47, 70), (300, 129)])
def test_dots(compiler: Any, m: int, k: int, n: int) -> None:
    check(compiler, (m, k, n), True, "dots", np.float32)


WIDE, NARROW = Target.of("x86-64-v4", 2), Target.of("x86-64-v3", 2)


def written(m: int, target: Target) -> backend.Written:
    """A product of m rows with a filter [N, K]."""
    shapes = [(m, 64), (96, 64), (96,)]
    library = library_of(layer(True), [tf.TensorSpec(s) for s in shapes])
    return backend.write(library, shapes, target=target)


@pytest.mark.parametrize(("target", "most"), [(WIDE, 14), (NARROW, 7)])
def test_dots_are_for_rows_that_would_not_fill_a_vector(target: Target, most: int) -> None:
    assert "0.dots.task" in written(most, target).choices
    assert "0.gemm.tile" in written(most + 1, target).choices


@pytest.mark.parametrize(("target", "columns"), [(WIDE, 2), (NARROW, 1)])
def test_two_columns_are_computed_at_a_time_where_there_are_registers(
    target: Target, columns: int
) -> None:
    assert written(7, target).choices.get("0.dots.columns", 1) == columns


@pytest.mark.parametrize(("k", "n"), [(47, 70), (300, 129)])
def test_rows_that_only_wide_vectors_have_lanes_for(compiler: Any, k: int, n: int) -> None:
    strategy = "dots" if Target.host().lanes == 16 else "gemm"
    check(compiler, (12, k, n), True, strategy, np.float32)


def test_what_the_streams_read_next_is_prefetched() -> None:
    assert "prefetch" in str(written(8, WIDE).module.functions)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize(("k", "n"), [(1, 8), (13, 9), (64, 64), (47, 70), (300, 1029)])
def test_axpy(compiler: Any, m: int, k: int, n: int) -> None:
    check(compiler, (m, k, n), False, "axpy", np.float32)


@pytest.mark.parametrize(("tb", "strategy"), [(True, "dots"), (False, "axpy")])
def test_float64(compiler: Any, tb: bool, strategy: str) -> None:
    check(compiler, (3, 70, 50), tb, strategy, np.float64)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("tb", "strategy"), [(True, "dots"), (False, "axpy")])
def test_16_bits_are_widened_as_they_are_read(
    compiler: Any, tb: bool, strategy: str, dtype: Any
) -> None:
    check(compiler, (3, 70, 50), tb, strategy, dtype)


@pytest.mark.parametrize(("tb", "strategy"), [(True, "dots"), (False, "axpy")])
def test_large_work_is_shared_out(compiler: Any, tb: bool, strategy: str) -> None:
    loaded = check(compiler, (1, 1024, 1024), tb, strategy, np.float32)
    assert loaded.launches == 2


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 1003, 1000), (4, 517, 1029), (2, 300, 4100)],
    ids=["a short last piece", "groups of columns", "more groups than wanted tasks"],
)
def test_axpy_adds_what_threads_have_summed(compiler: Any, m: int, k: int, n: int) -> None:
    loaded = check(compiler, (m, k, n), False, "axpy", np.float32)
    assert loaded.launches == 2


@pytest.mark.parametrize("m", [1, 3])
def test_infinity_beyond_the_last_vector_is_not_counted_twice(compiler: Any, m: int) -> None:
    """The last vector of K overlaps: inf * 0 there would be NaN."""
    x, w = np.ones((m, 11), np.float32), np.ones((16, 11), np.float32)
    w[4, 5], x[0, 3] = np.inf, -np.inf
    b = np.zeros(16, np.float32)
    loaded = compiler.compile(layer(True), [x, w, b])
    (result,) = loaded([x, w, b], [(m, 16)], [x.dtype])
    np.testing.assert_array_equal(result, layer(True)(*map(tf.constant, (x, w, b))).numpy())


def test_batches(compiler: Any) -> None:
    random = np.random.default_rng(0)
    a = random.uniform(-1, 1, (5, 2, 40)).astype(np.float32)
    b = random.uniform(-1, 1, (5, 24, 40)).astype(np.float32)
    loaded = compiler.compare(
        lambda a, b: tf.matmul(a, b, transpose_b=True), a, b, rtol=1e-5, atol=1e-5
    )
    assert loaded.kernel.strategy == "dots"
    loaded = compiler.compare(
        lambda a, b: tf.matmul(a, tf.transpose(b, [0, 2, 1])), a, b, rtol=1e-5, atol=1e-5
    )
