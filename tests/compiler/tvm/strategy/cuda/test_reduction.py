"""Reductions over any dimensions on a GPU made of threads."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.gpu.shim.cases import Batch, Case

GRID = [{"s0": a, "s1": b} for a, b in ((0, 5), (5, 0), (1, 1), (3, 5), (70, 33), (300, 100))]

CASES = {
    "columns": Case(
        lambda x: tf.reduce_sum(x, 0), [["s0", "s1"]], "reduction", runs=GRID, atol=5e-5
    ),
    "columns_half": Case(
        lambda x: tf.reduce_max(x, 0) * 2.0, [["s0", "s1"]], "reduction",
        dtypes=[np.float16], runs=GRID[2:],
    ),
    "channels": Case(
        lambda x: tf.reduce_mean(x, [0, 2]), [["s0", "s1", 4]], "reduction", runs=GRID[2:],
        atol=2e-5,
    ),
    "middle": Case(
        lambda x: tf.nn.relu(tf.reduce_sum(x * x, 1)), [["s0", "s1", 3]], "reduction", runs=GRID,
        rtol=1e-5,
    ),
    "bias_gradient": Case(
        lambda x, y: tf.reduce_sum(x * y, [0, 1]), [["s0", "s1", 40]] * 2, "reduction",
        runs=[{"s0": 3, "s1": 30}], atol=5e-5,
    ),
    "all_of_columns": Case(
        lambda x: tf.reduce_all(x, 0), [["s0", "s1"]], "reduction", dtypes=[np.bool_], runs=GRID
    ),
    "products_of_columns": Case(
        lambda x: tf.reduce_prod(x, 0), [["s0", "s1"]], "reduction", dtypes=[np.int32], runs=GRID
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)
