"""Matrix products on a GPU made of threads: right for every size, layout and dtype."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.gpu.shim.cases import Batch, Case

SIZES = [
    {"s0": m, "s1": k, "s2": n}
    for m, k, n in ((1, 1, 1), (0, 3, 4), (3, 0, 4), (5, 7, 3), (64, 16, 64), (70, 33, 130))
]

WIDE = [np.float64]

CASES = {
    "product": Case(
        lambda x, y: x @ y, [["s0", "s1"], ["s1", "s2"]], "product", dtypes=WIDE, runs=SIZES
    ),
    "product_of_transposed": Case(
        lambda x, y: tf.matmul(x, y, transpose_a=True, transpose_b=True),
        [["s1", "s0"], ["s2", "s1"]], "product", dtypes=WIDE, runs=SIZES,
    ),
    "product_of_few": Case(
        lambda x, y: x @ y, [["s0", "s1"], ["s1", "s2"]], "product", dtypes=WIDE, runs=SIZES[2:],
        choices={"0.product.own": 2},
    ),
    "product_of_many": Case(
        lambda x, y: x @ y, [["s0", "s1"], ["s1", "s2"]], "product", dtypes=[np.int32],
        runs=SIZES[2:], choices={"0.product.own": 8},
    ),
    "dense": Case(
        lambda x, w, b: tf.nn.relu(x @ w + b), [["s0", 40], [40, 50], [50]], "product",
        dtypes=WIDE, runs=[{"s0": 1}, {"s0": 66}],
    ),
    "product_of_batches": Case(
        tf.matmul, [[3, "s0", "s1"], [3, "s1", "s2"]], "product",
        dtypes=WIDE, runs=SIZES[3:5],
    ),
    "product_double": Case(
        lambda x, y: x @ y, [["s0", 33], [33, 20]], "product", dtypes=[np.float64],
        runs=[{"s0": 9}], rtol=1e-12, atol=1e-12,
    ),
    "product_int32": Case(
        lambda x, y: x @ y, [["s0", 33], [33, 20]], "product", dtypes=[np.int32],
        runs=[{"s0": 9}],
    ),
    "product_of_int8": Case(
        lambda x, y: tf.matmul(tf.cast(x, tf.int32) - 5, tf.cast(y, tf.int32) + 1),
        [["s0", 33], [33, 20]], "product", dtypes=[np.int8, np.uint8], runs=[{"s0": 9}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)
