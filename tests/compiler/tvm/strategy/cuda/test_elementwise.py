"""Element-wise chains on a GPU made of threads: right for every size, in vectors where they fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.gpu.shim.cases import BFLOAT16, Batch, Case
from tests.gpu.shim.emulator import functions_of

FLAT = [{"s0": n} for n in (0, 1, 3, 4, 1025, 9000)]
GRID = [{"s0": a, "s1": b} for a, b in ((0, 5), (5, 0), (1, 1), (3, 5), (70, 33), (2, 4096))]


def chain(x: Any, y: Any) -> Any:
    return tf.nn.relu(x * 2.0 + y) - tf.minimum(x, y), tf.where(x > y, x, y)


def rounded_chain(x: Any, y: Any, *, dtype: np.dtype) -> Any:
    """The chain with its sum in 16 bits: it takes in what is subtracted from it afterwards."""
    total = tf.cast(tf.cast(x * 2.0 + y, dtype), x.dtype)
    return tf.nn.relu(total) - tf.minimum(x, y), tf.where(x > y, x, y)


def functions(x: Any) -> Any:
    positive = tf.abs(x)
    return (
        tf.exp(x), tf.math.expm1(x), tf.math.log(positive), tf.math.log1p(positive), tf.tanh(x),
        tf.sigmoid(x), tf.nn.softplus(x), tf.math.rsqrt(positive), tf.sin(x),
        tf.cos(x), tf.sqrt(positive), tf.floor(x), tf.round(x), tf.sign(x), 1.0 / x,
    )  # fmt: skip


def integers(x: Any, y: Any) -> Any:
    return x + y, x - y, x * y, tf.maximum(x, y), tf.abs(x), -x, x > y


def dropped(x: Any) -> Any:
    random = tf.random.stateless_uniform(tf.shape(x), [163851598, 3], dtype=tf.float32)
    return tf.where(random < 0.4, tf.zeros_like(x), x / 0.6), tf.cast(random, x.dtype)


CASES = {
    "flat": Case(chain, [["s0"]] * 2, "elementwise", runs=FLAT, special=True),
    "flat_half": Case(
        chain, [["s0"]] * 2, "elementwise", dtypes=[np.float16], runs=FLAT, rounded=rounded_chain
    ),
    "flat_bfloat16": Case(
        chain, [["s0"]] * 2, "elementwise", dtypes=[BFLOAT16], runs=FLAT, rounded=rounded_chain
    ),
    "flat_double": Case(chain, [["s0"]] * 2, "elementwise", dtypes=[np.float64], runs=FLAT),
    "functions": Case(functions, [[4000]], "elementwise", special=True, atol=1.2e-38),
    "functions_double": Case(
        functions, [[4001]], "elementwise", dtypes=[np.float64], rtol=4e-15, atol=1e-300
    ),
    "erf": Case(tf.math.erf, [[2000]], "elementwise"),
    "int32": Case(
        integers, [["s0"]] * 2, "elementwise", dtypes=[np.int32], runs=FLAT, special=True
    ),
    "int64": Case(
        integers, [["s0"]] * 2, "elementwise", dtypes=[np.int64], runs=FLAT, special=True
    ),
    "bool": Case(
        lambda x, y: (x & y, x | ~y, tf.cast(x, tf.float32)),
        [["s0"]] * 2, "elementwise", dtypes=[np.bool_], runs=FLAT,
    ),
    "casts": Case(
        lambda x, y: (tf.cast(x, tf.float16), tf.cast(y, tf.float32) * 0.5, tf.cast(x, tf.int32)),
        [["s0"], ["s0"]], "elementwise", dtypes=[np.float32, np.uint8], runs=FLAT,
    ),
    "bias": Case(lambda x, b: tf.nn.gelu(x + b), [["s0", "s1"], ["s1"]], "elementwise", runs=GRID),
    "bias_of_vectors": Case(
        lambda x, b: tf.tanh(x + b) * x, [["s0", 8], [8]], "elementwise",
        runs=[{"s0": 1}, {"s0": 300}],
    ),
    "column": Case(lambda x, c: x / c, [["s0", "s1"], ["s0", 1]], "elementwise", runs=GRID),
    "scalar": Case(lambda x: x * 3.0 + 1.0, [[]], "elementwise"),
    "transposed": Case(
        lambda x, y: tf.transpose(x) + y, [["s0", "s1"], ["s1", "s0"]], "elementwise", runs=GRID
    ),
    "of_itself_moved": Case(
        lambda x: x[:, 1:] - x[:, :-1], [["s0", "s1"]], "elementwise",
        runs=[{"s0": 3, "s1": 1}, {"s0": 5, "s1": 18}],
    ),
    "parts": Case(
        lambda x, y: tf.concat([x * 2.0, y], 1), [["s0", 4], ["s0", 3]], "elementwise",
        runs=[{"s0": 1}, {"s0": 50}],
    ),
    "table": Case(
        lambda x: x * tf.constant([1.0, -2.0, 3.0, 0.5], x.dtype), [["s0", 4]],
        "constant+elementwise", runs=[{"s0": 40}], launches=2,
    ),
    "dropped": Case(dropped, [["s0"]], "elementwise", runs=FLAT),
    "products": Case(lambda x, y: x * x - y * y, [["s0"]] * 2, "elementwise", runs=FLAT),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


def test_products_of_different_ops_are_rounded_alike(batch: Batch) -> None:
    x = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    (same,) = batch.emulator.run(batch.kernels["products"], [x, x], [["s0"]] * 2, [np.float32])
    assert not same.any()  # x * x - x * x


def test_contiguous_elements_are_accessed_sixteen_bytes_at_a_time(batch: Batch) -> None:
    kernels = batch.kernels
    assert "composite_copy<4>" in functions_of(kernels["flat"])
    assert [str(a) for a in kernels["flat"].plan.aligned] == ["in0", "in1", "out0", "out1"]
    assert "composite_copy<8>" in functions_of(kernels["flat_half"])
    assert "composite_copy<4>" in functions_of(kernels["bias_of_vectors"])


def test_what_is_not_proven_to_be_aligned_is_accessed_one_by_one(batch: Batch) -> None:
    for name in ("bias", "transposed", "of_itself_moved"):
        assert "composite_copy" not in functions_of(batch.kernels[name])
        assert batch.kernels[name].plan.aligned == ()
