"""Rows on a GPU made of threads: one launch, right for rows of every length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.gpu.shim.cases import BFLOAT16, Batch, Case
from tests.gpu.shim.emulator import functions_of

ANY = [{"s0": a, "s1": b} for a, b in ((0, 5), (1, 1), (3, 5), (20, 11), (2, 1000))]


def softmax(x: Any) -> Any:
    e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3) * scale + offset


def rms_norm(x: Any) -> Any:
    return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6)


def several(x: Any) -> Any:
    return softmax(x), tf.reduce_logsumexp(x, -1), tf.reduce_min(x, -1, keepdims=True)


def read_where_made(x: Any) -> Any:
    """Results of a row, of its elements and of one value, that what follows in it reads."""
    most = tf.reduce_max(x, -1, keepdims=True)
    y = tf.exp(x - most)
    return most, y, y / tf.reduce_sum(y * y, -1, keepdims=True), tf.reduce_sum(y, -1) * most[:, 0]


def of_width(width: int, rows: int = 5) -> Case:
    shapes: list[list[int | str]] = [["s0", width], [width], [width]]
    return Case(layer_norm, shapes, "rows", runs=[{"s0": 1}, {"s0": rows}], atol=2e-5, rtol=2e-5)


CASES = {
    **{f"norm_{n}": of_width(n) for n in (2, 7, 32, 37, 256, 1023)},
    "norm_4096": of_width(4096, 3),
    "norm_any": Case(layer_norm, [["s0", "s1"], ["s1"], ["s1"]], "rows", runs=ANY, atol=4e-5),
    "read_64": Case(read_where_made, [["s0", 64]], "rows", runs=[{"s0": 9}], rtol=1e-5),
    "read_any": Case(read_where_made, [["s0", "s1"]], "rows", runs=ANY[1:], rtol=1e-5),
    "softmax_64": Case(several, [["s0", 64]], "rows", runs=[{"s0": 1}, {"s0": 33}]),
    "softmax_9000": Case(several, [["s0", 9000]], "rows", runs=[{"s0": 2}]),
    "softmax_40000": Case(softmax, [["s0", 40000]], "rows", runs=[{"s0": 1}]),
    "softmax_any": Case(several, [["s0", "s1"]], "rows", runs=ANY),
    "softmax_warps": Case(
        several, [["s0", "s1"]], "rows", runs=ANY, choices={"0.rows.threads": 32}
    ),
    "softmax_half": Case(
        softmax, [["s0", 96]], "rows", dtypes=[np.float16], runs=[{"s0": 9}]
    ),
    "rms_bfloat16": Case(
        rms_norm, [["s0", 128]], "rows", dtypes=[BFLOAT16], runs=[{"s0": 9}], rtol=4e-3
    ),
    "rms_double": Case(rms_norm, [["s0", 66]], "rows", dtypes=[np.float64], runs=[{"s0": 5}]),
    "images": Case(
        lambda x: x - tf.reduce_mean(x, [1, 2], keepdims=True), [["s0", 5, 6]], "rows",
        runs=[{"s0": 4}],
    ),
    "one_row": Case(
        lambda x: x / tf.reduce_sum(x), [["s0"]], "rows", runs=[{"s0": 700}], rtol=1e-5
    ),
    "integers": Case(
        lambda x: (tf.reduce_sum(x, -1), tf.reduce_max(x, -1)), [["s0", 50]], "rows",
        dtypes=[np.int64], runs=[{"s0": 6}],
    ),
    "truth": Case(
        lambda x: (tf.reduce_all(x, -1), tf.reduce_any(x, -1)), [["s0", 3]], "rows",
        dtypes=[np.bool_], runs=[{"s0": 70}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


@pytest.mark.parametrize(
    ("name", "vectors"), [("softmax_64", 1), ("norm_256", 2), ("norm_4096", 4)]
)
def test_a_row_that_fits_is_read_once_in_vectors(batch: Batch, name: str, vectors: int) -> None:
    text = functions_of(batch.kernels[name])
    assert text.count("in0[") == text.count("(&(in0[") == vectors  # for all sweeps


def test_rows_that_fit_a_warp_need_no_barrier(batch: Batch) -> None:
    assert "__syncthreads" not in functions_of(batch.kernels["norm_1023"])
    assert "__syncthreads" in functions_of(batch.kernels["norm_4096"])
