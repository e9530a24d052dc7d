"""Stateless random numbers: TensorFlow's, bit by bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered

raw = tf.raw_ops
SEEDS = [(0, 0), (1, 2), (-1, -(2**31)), (2**31 - 1, 7)]


def uniform(shape: Any, key: Any, counter: Any, dtype: Any, alg: int = 3) -> Any:
    return raw.StatelessRandomUniformV2(shape=shape, key=key, counter=counter, dtype=dtype, alg=alg)


def bits(result: Any, expected: Any) -> None:
    assert result.tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(3, 37), (64,), (2, 3, 5), (), (5, 0), (1,), (7, 16)])
def test_uniform_of_a_seed(compiler: Any, shape: tuple[int, ...], dtype: Any) -> None:
    def function(x: Any, seed: Any) -> Any:
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        return x + uniform(tf.shape(x), key, counter, x.dtype)

    x = np.zeros(shape, dtype)
    loaded = compiler.compile(function, [x, np.zeros(2, np.int32)])
    for seed in SEEDS:
        arrays = [x, np.array(seed, np.int32)]
        (result,) = loaded(arrays, [shape], [x.dtype])
        bits(result, function(*map(tf.constant, arrays)))
    assert loaded.kernel.proof.is_complete, loaded.kernel.proof


@pytest.mark.parametrize("tasks", [1, 3])
def test_sizes_of_the_call(compiler: Any, tasks: int) -> None:
    def function(x: Any, seed: Any) -> Any:
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        drawn = uniform(tf.shape(x), key, counter, x.dtype)
        return tf.where(drawn >= 0.25, x / 0.75, 0.0)

    seed = np.array([2**40 + 3, -5], np.int64)
    shapes = [("s0", "s1"), (2,)]
    loaded = compiler.compile(function, [np.ones((2, 3), np.float32), seed], shapes, tasks=tasks)
    for shape in ((0, 5), (1, 1), (37, 5), (300, 700)):
        x = np.ones(shape, np.float32)
        (result,) = loaded([x, seed], [shape], [x.dtype])
        bits(result, function(tf.constant(x), tf.constant(seed)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_normal_numbers(compiler: Any, dtype: Any) -> None:
    def function(x: Any, seed: Any) -> Any:
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        return x + raw.StatelessRandomNormalV2(
            shape=tf.shape(x), key=key, counter=counter, dtype=x.dtype, alg=1
        )

    shapes = [("s0", "s1"), (2,)]
    loaded = compiler.compile(function, [np.ones((2, 3), dtype), np.zeros(2, np.int32)], shapes)
    near = 3e-7 if dtype is np.float32 else float(ml_dtypes.finfo(dtype).eps)
    for seed, shape in zip(SEEDS, ((37, 5), (1, 1), (300, 64), (5, 0)), strict=True):
        arrays = [np.zeros(shape, dtype), np.array(seed, np.int32)]
        (result,) = loaded(arrays, [shape], [arrays[0].dtype])
        expected = function(*map(tf.constant, arrays)).numpy()
        np.testing.assert_allclose(result.astype(float), expected.astype(float), near, 1e-7)
    assert loaded.kernel.proof.is_complete, loaded.kernel.proof


@pytest.mark.parametrize("ends", [(0, 10), (-7, 2**31 - 8), (-(2**31), 2**31 - 1), (3, 4)])
def test_integers(compiler: Any, ends: tuple[int, int]) -> None:
    def function(x: Any, seed: Any) -> Any:
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        least, end = (tf.constant(i, tf.int32) for i in ends)
        drawn = raw.StatelessRandomUniformIntV2(
            shape=tf.shape(x), key=key, counter=counter, alg=3, minval=least, maxval=end
        )
        return drawn, tf.gather(drawn, 2, axis=1)

    arrays = (np.zeros((9, 37), np.float32), np.array([3, -4], np.int32))
    compiler.compare(function, *arrays)


def test_counters_that_carry(compiler: Any) -> None:
    def function(key: Any, counter: Any) -> Any:
        return uniform([9, 30], key, counter, tf.float32, alg=1)

    most = 2**64 - 1
    key = np.array([most - 3], np.uint64)
    loaded = compiler.compile(function, [key, np.zeros(2, np.uint64)])
    for counter in ((2**32 - 3, 0), (most - 5, 2**32 - 1), (most - 5, most)):
        arrays = [key, np.array(counter, np.uint64)]
        (result,) = loaded(arrays, [(9, 30)], [np.dtype(np.float32)])
        bits(result, function(*map(tf.constant, arrays)))


def test_elements_read_elsewhere(compiler: Any) -> None:
    """Transposed, reversed, summed and broadcast."""

    def function(seed: Any) -> Any:
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        drawn = uniform([20, 19], key, counter, tf.float32)
        other = uniform([19, 1], key, counter, tf.float32)
        return tf.transpose(drawn) + other, drawn[::-1, 2:], tf.reduce_max(drawn, 0)

    seed = np.array([5, 6], np.int32)
    expected = function(tf.constant(seed))
    loaded = compiler.compile(function, [seed])
    results = loaded(
        [seed], [y.shape for y in expected], [y.dtype.as_numpy_dtype for y in expected]
    )
    for result, wanted in zip(results, expected, strict=True):
        bits(result, wanted)


def test_what_is_not_covered(compiler: Any) -> None:
    key, counter = np.zeros(1, np.uint64), np.zeros(2, np.uint64)
    with pytest.raises(NotCovered, match="other than Philox"):
        compiler.compile(lambda k, c: uniform([4], k, c, tf.float32, alg=2), [key, counter[:1]])
    with pytest.raises(NotCovered, match="dtype float64"):
        compiler.compile(lambda k, c: uniform([4], k, c, tf.float64), [key, counter])
