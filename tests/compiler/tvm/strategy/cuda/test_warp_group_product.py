"""Products of four warps together, on a GPU made of threads: for every size and layout."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.compiler.tvm.strategy.cuda.test_tensor_product import dense, heads, transposed
from tests.gpu.shim.cases import BFLOAT16, Batch, Case
from tests.gpu.shim.emulator import functions_of

NAME = "warp_group_product"


def turned(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Neither factor has the inner dimension near."""
    return tf.matmul(x, y, transpose_a=True)


CASES = {
    "group_dense": Case(
        dense, [["s0", 136], [136, 264], [264], ["s0", 264]], NAME, dtypes=[np.float16],
        runs=[{"s0": 0}, {"s0": 1}, {"s0": 150}], atol=5e-3, level="sm_90",
        choices={"0.warps.tile": "128x256"},
    ),
    "group_default": Case(
        dense, [["s0", 72], [72, 40], [40], ["s0", 40]], NAME, dtypes=[BFLOAT16],
        runs=[{"s0": 70}], atol=3e-2, level="sm_90",
    ),
    "group_transposed": Case(
        transposed, [[40, 88], ["s0", 40]], NAME, dtypes=[np.float16], runs=[{"s0": 72}],
        atol=4e-3, level="sm_90", choices={"0.warps.tile": "64x128"},
    ),
    "group_turned": Case(
        turned, [[328, 136], [328, 128]], NAME, dtypes=[BFLOAT16], atol=6e-2, level="sm_90",
        choices={"0.warps.tile": "128x128"},
    ),
    "group_narrow": Case(
        turned, [["s0", 72], ["s0", 64]], NAME, dtypes=[np.float16],
        runs=[{"s0": 0}, {"s0": 65}], atol=4e-3, level="sm_90",
        choices={"0.warps.tile": "128x64"},
    ),
    "group_heads": Case(
        heads, [[2, "s0", 32], [2, "s1", 32]], NAME, dtypes=[np.float16],
        runs=[{"s0": 5, "s1": 65}], atol=2e-3, level="sm_90", launches=3,
    ),
    "group_batches": Case(
        tf.matmul, [[3, "s0", 24], [24, 48]], NAME, dtypes=[np.float16],
        runs=[{"s0": 70}], atol=4e-3, level="sm_90",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


def test_a_product_begins_where_its_copies_were_published(batch: Batch) -> None:
    text = functions_of(batch.kernels["group_dense"])
    assert text.index("composite_wgmma_publish") < text.index("composite_wgmma_begin")
    assert "composite_wgmma_float16<256, 0, 1>" in text
