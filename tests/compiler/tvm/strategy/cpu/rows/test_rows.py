"""Stages over rows: one kernel for all that is done to a row, right for every shape of rows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.build import make_module
from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.read.reader import read_function
from composite.compiler.tvm.target import Target
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.denormals import denormals_are_zero

SHAPES = [(2, 1), (1, 2), (3, 5), (9, 7), (8, 8), (21, 10), (5, 16), (5, 37), (3, 1023), (2, 9000)]


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def log_softmax(x: Any) -> Any:
    z = x - tf.reduce_max(x, -1, keepdims=True)
    return z - tf.math.log(tf.reduce_sum(tf.exp(z), -1, keepdims=True))


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + offset


def cross_entropy(x: Any, labels: Any) -> Any:
    return -tf.reduce_sum(labels * log_softmax(x), -1)


def check_in_float64(
    compiler: Any, function: Any, arrays: list[np.ndarray], shapes: Any = None, atol: float = 2e-6
) -> Any:
    """Compare a kernel in float32 with TF in float64."""
    exact = tf.nest.flatten(function(*(tf.constant(a.astype(np.float64)) for a in arrays)))
    loaded = compiler.compile(function, arrays, shapes)
    wanted = [np.asarray(e) for e in exact]
    results = loaded(arrays, [w.shape for w in wanted], [arrays[0].dtype for _ in wanted])
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, want, rtol=2e-6, atol=atol)
    return loaded


@pytest.mark.parametrize("shape", SHAPES)
def test_bodies_over_rows_are_one_stage(compiler: Any, shape: tuple[int, int]) -> None:
    x, scale, offset = normal(*shape), normal(shape[1]), normal(shape[1])

    def function(x: Any, scale: Any, offset: Any) -> Any:
        return layer_norm(x, scale, offset), softmax(x * 3.0), cross_entropy(x, scale)

    # The variance of few elements may be small, and its root then magnifies the rounding of x.
    loaded = check_in_float64(compiler, function, [x, scale, offset], atol=4e-5)
    if shape[1] > 1:
        assert loaded.kernel.strategy == "rows"


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (1, 1), (3, 5), (20, 11), (2, 1000), (1, 40000)])
def test_symbolic_sizes(compiler: Any, shape: tuple[int, int]) -> None:
    x = normal(*shape)
    compiler.compare(
        lambda x: (softmax(x), tf.reduce_sum(x, -1), tf.reduce_max(x, -1, keepdims=True)),
        x, shapes=[("s0", "s1")], rtol=2e-5, atol=2e-6 * max(1, shape[1] ** 0.5),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_nothing_to_do(compiler: Any, shape: tuple[int, int]) -> None:
    compiler.compare(lambda x: (softmax(x), tf.reduce_sum(x, -1)), normal(*shape))


@pytest.mark.parametrize("shape", [(3, 70000), (1, 300, 257), (2, 5, 7)])
def test_few_long_rows_are_cut_into_pieces(compiler: Any, shape: tuple[int, ...]) -> None:
    """Rows of two dimensions too, which a bias along the last keeps from being one."""
    x, bias = normal(*shape), normal(shape[-1])
    axes = list(range(1, len(shape)))

    def function(x: Any, bias: Any) -> Any:
        y = x + bias
        e = tf.exp(y - tf.reduce_max(y, axes, keepdims=True))
        return e / tf.reduce_sum(e, axes, keepdims=True), tf.reduce_sum(y * y)

    loaded = check_in_float64(compiler, function, [x, bias])
    if x.size > 50000:
        assert loaded.launches >= 1  # cheap passes are not worth a second thread
    symbols = [tuple(f"s{i}" for i in range(len(shape))), (f"s{len(shape) - 1}",)]
    check_in_float64(compiler, function, [x, bias], symbols)


def test_error_does_not_grow_with_the_width(compiler: Any) -> None:
    random = np.random.default_rng(0)
    for width in (1000, 200_000):
        x = random.uniform(0.5, 1.5, (4, width)).astype(np.float32)
        loaded = compiler.compile(lambda x: tf.reduce_sum(x, -1), [x])
        (result,) = loaded([x], [(4,)], [np.float32])
        exact = x.astype(np.float64).sum(-1)
        assert np.abs(result / exact - 1).max() < 2 * np.finfo(np.float32).eps


@pytest.mark.parametrize("width", [3, 11, 40])
def test_not_a_number_and_infinity(compiler: Any, width: int) -> None:
    x = normal(12, width)
    x[0] = -np.inf
    x[1, 1] = np.nan
    x[2, 0] = np.inf
    x[3, 2] = -np.inf
    x[4] = -np.nan
    x[5] = 3e38
    compiler.compare(
        lambda x: (softmax(x), log_softmax(x), tf.reduce_sum(x, -1), tf.reduce_max(x, -1)),
        x, rtol=1e-5, atol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("divisor", [3.0, -7.5, 1e-40, 1e38, 2.5e-38, 0.0, -0.0, np.inf, np.nan])
def test_quotients_by_a_value_of_the_row_are_exact(compiler: Any, divisor: float) -> None:
    """What one value divides is multiplied by its reciprocal, of which no rounding is left."""
    numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, divisor, 2 * divisor, 1.0, 1e-30, 1e38, 3.4e38]
    x = np.concatenate([numbers, 10 ** np.random.default_rng(0).uniform(-20, 20, 5000)])
    x = np.stack([x, -x]).astype(np.float32)
    d = np.full((2, 1), divisor, np.float32)
    loaded = compiler.compile(lambda x, d: (x / d, tf.reduce_max(x, -1)), [x, d])
    assert loaded.kernel.strategy == "rows"
    result, _ = loaded([x, d], [x.shape, (2,)], [np.float32, np.float32])
    with np.errstate(all="ignore"):
        exact = x / d
    small = np.abs(exact) < 1e-30  # the reciprocal's second part is lost below the normal numbers
    np.testing.assert_array_equal(np.where(small, 0, result), np.where(small, 0, exact))
    np.testing.assert_array_max_ulp(result[small], exact[small], 1)


@pytest.mark.parametrize("divisor", [2.3e28, 1e-25, 1.0, 0.999, 1.7e38, 2e-38])
def test_quotients_at_both_ends_of_the_range(compiler: Any, divisor: float) -> None:
    """Neither the smallest normal numbers nor the largest ones are lost on the way."""
    least, most = np.finfo(np.float32).tiny * divisor, np.finfo(np.float32).max * divisor
    x = np.concatenate([np.linspace(least * 1.001, least * 4, 40), np.linspace(most / 4, most, 40)])
    ends = np.finfo(np.float32)
    x = x[(x > ends.tiny) & (x < ends.max)].astype(np.float32)[None]
    d = np.full((1, 1), divisor, np.float32)
    loaded = compiler.compile(lambda x, d: (x / d, tf.reduce_max(x, -1)), [x, d])
    assert loaded.kernel.strategy == "rows"
    with denormals_are_zero():
        result, _ = loaded([x, d], [x.shape, (1,)], [np.float32, np.float32])
    exact = (x.astype(np.float64) / d).astype(np.float32)
    np.testing.assert_array_max_ulp(result[np.isfinite(exact)], exact[np.isfinite(exact)], 2)


def test_results_that_others_read_and_other_axes(compiler: Any) -> None:
    """Outputs used twice, a norm of a norm, rows of two dimensions, sums over the first."""
    x, scale = normal(6, 5, 24), normal(24)

    def function(x: Any, scale: Any) -> Any:
        h = x + scale
        y = layer_norm(h, scale, scale)
        z = y / tf.norm(y, axis=[1, 2], keepdims=True)
        return h, y, tf.reduce_mean(y, -1), z, tf.reduce_sum(z, [0, 1]), tf.transpose(z, [2, 0, 1])

    compiler.compare(function, x, scale, rtol=1e-5, atol=1e-5)
    compiler.compare(function, x, scale, shapes=[("s0", 5, 24), (24,)], rtol=1e-5, atol=1e-5)


def test_square_matrices_do_not_mix_rows_and_columns(compiler: Any) -> None:
    x = normal(7, 7)
    compiler.compare(
        lambda x: (x - tf.reduce_sum(x, -1), x - tf.reduce_sum(x, -1, keepdims=True),
                   softmax(tf.transpose(softmax(x)))),
        x, rtol=1e-5, atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("size", [2, 16])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_what_is_broadcast_within_rows_is_not_a_value_a_row(
    compiler: Any, size: int, axis: int
) -> None:
    """Though what it was made of has the shape of one value a row where matrices are square."""

    def function(table: Any, place: Any, x: Any) -> Any:
        row = tf.gather(table, place)
        y = tf.expand_dims(row, axis) * 2.0 + x
        top = tf.reduce_max(y, -1, keepdims=True)
        total = tf.reduce_sum(tf.exp(y - top), -1)
        return tf.math.log(total) + tf.squeeze(top, -1), y - top

    table, x = normal(3, size, size, size), normal(size, size, size, size)
    compiler.compare(function, table, np.int32(1), x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(16,), (3, 20), (1, 5), (2, 3, 4)])
def test_a_value_a_row_that_is_several_results(compiler: Any, shape: tuple[int, ...]) -> None:
    """Under both of its shapes, and under one of them twice: each has a buffer of its own."""

    def function(x: Any) -> Any:
        kept = tf.reduce_max(x, -1, keepdims=True)
        alone = tf.squeeze(kept, -1)
        return kept, alone, kept, x - kept, alone, tf.reduce_max(x, -1), -kept

    compiler.compare(function, normal(*shape))


@pytest.mark.parametrize("shape", [(12, 5, 5), (3, 20, 7), (1, 6, 70), (40, 3, 16)])
def test_rows_of_what_another_stage_has_reduced(compiler: Any, shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        columns = tf.reduce_max(x, 1)
        rows = tf.reduce_sum(columns, 1)
        whole = tf.reduce_sum(tf.exp(tf.reduce_max(x, [1])))
        return columns, rows, whole, columns - tf.reduce_max(columns, 1, keepdims=True)

    compiler.compare(function, normal(*shape), rtol=1e-5, atol=1e-6)


VIEWS = {
    "transpose": lambda x: tf.transpose(x, [1, 0, 2]),
    "slice": lambda x: x[:, 1:, ::2],
    "reverse": lambda x: tf.reverse(x, [1]),
    "concat": lambda x: tf.concat([x, x[:1]], 0),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("axes", [None, [1, 2], [2]])
def test_a_view_that_is_a_result_and_reduced(compiler: Any, view: str, axes: Any) -> None:
    def function(x: Any) -> Any:
        y = VIEWS[view](x)
        return y, tf.reduce_max(y, axes) > 0.3, tf.reduce_sum(y, axes)

    compiler.compare(function, normal(4, 5, 7), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduce", ["reduce_sum", "reduce_max", "reduce_logsumexp"])
def test_rows_of_what_a_loop_has_reduced(compiler: Any, reduce: str) -> None:
    def function(e: Any, t: Any) -> Any:
        def step(i: Any, a: Any) -> Any:
            return i + 1, getattr(tf, reduce)(a[:, None] + t, axis=0) + e[i]

        _, a = tf.while_loop(lambda i, _: i < 6, step, (1, e[0]))
        return getattr(tf, reduce)(a), tf.reduce_max(a - e[0]), a

    compiler.compare(function, normal(6, 5), normal(5, 5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_other_dtypes(compiler: Any, dtype: Any) -> None:
    x = normal(5, 19, dtype=dtype)
    tolerance = {np.float64: 1e-13, np.float16: 2e-3}.get(dtype, 2e-2)
    compiler.compare(
        lambda x: (softmax(x), x / tf.reduce_max(x, -1, keepdims=True)),
        x, rtol=tolerance, atol=tolerance,
    )  # fmt: skip


def test_integers_and_comparisons(compiler: Any) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (9, 21))
    compiler.compare(
        lambda x: (tf.cast(tf.equal(x, tf.reduce_max(x, -1, keepdims=True)), tf.int64),
                   x - tf.reduce_min(x, -1, keepdims=True), tf.reduce_sum(x * x, -1)),
        x,
    )  # fmt: skip


@pytest.mark.parametrize("width", [64, 100, 133, None])
def test_what_is_kept_lies_where_a_result_will(compiler: Any, width: int | None) -> None:
    """Where the last vector overlaps another, and where several results are made of one element."""

    def function(x: Any) -> Any:
        e = tf.exp(x)
        total = tf.reduce_sum(e, -1, keepdims=True)
        log = tf.math.log(total + e)
        norm = tf.reduce_sum(log * e, -1, keepdims=True)
        return tf.reverse(e, [1]) / total, e / total, e * norm, log - norm, tf.cast(e, tf.float64)

    x = normal(5, width or 77)
    compiler.compare(function, x, shapes=[("s0", width or "s1")], rtol=1e-5, atol=1e-5)


def test_more_rows_than_stay_near_are_asked_for_ahead() -> None:
    def count(rows: int) -> int:
        x = tf.TensorSpec([rows, 128])
        plan = make_plan(read_function(library_of(softmax, [x]), [(rows, 128)]))
        return str(make_module(plan, Target.of("x86-64-v3", 2), "k").functions).count("prefetch")

    assert count(128) == 0
    assert count(1024) > 0


def test_rows_of_a_trip_are_kept_where_its_row_of_the_result_is(compiler: Any) -> None:
    """An expensive element is kept in the result's place between two sweeps: this trip's place."""

    @tf.function
    def function(x: Any) -> Any:
        rows = tf.TensorArray(x.dtype, 5, element_shape=[40, 33])
        for t in tf.range(5):
            rows = rows.write(t, softmax(x[t]))
        return rows.stack()

    check_in_float64(compiler, function, [normal(5, 40, 33)])


def test_a_softmax_of_a_few_thousand_elements_is_shared(compiler: Any) -> None:
    """Scores of four heads at 64 words: 6 us on one thread."""
    x = normal(4, 64, 64)
    loaded = compiler.compare(tf.nn.softmax, x, rtol=1e-5, atol=1e-6)
    assert loaded.launches == 1
