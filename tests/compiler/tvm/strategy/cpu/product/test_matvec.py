"""Few rows: dot products along K, or scaled rows along N."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import Target


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


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize(("k", "n"), [(8, 8), (13, 9), (20, 30), (64, 64), (47, 70), (300, 129)])
def test_dots(compiler: Any, m: int, k: int, n: int) -> None:
    check(compiler, (m, k, n), True, "dots", np.float32)


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
