"""Attention by four warps together, on a GPU made of threads: whatever the logits are made of."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.tvm.strategy.cuda.test_attention import attention, causal_heads, masked
from tests.gpu.shim.cases import BFLOAT16, Batch, Case

NAME = "warp_group_attention"

CASES = {
    "attention_group": Case(
        attention, [[2, "s0", 64], [2, "s1", 64], [2, "s1", 64]], NAME, dtypes=[np.float16],
        runs=[{"s0": m, "s1": n} for m, n in ((3, 0), (3, 1), (130, 150))], atol=2e-3,
        level="sm_90",
    ),
    "attention_group_masked": Case(
        masked, [["s0", 16], ["s1", 16], ["s1", 16]], NAME, dtypes=[np.float16],
        runs=[{"s0": 5, "s1": 140}], atol=2e-3, level="sm_90",
    ),
    "attention_group_large": Case(  # logits of 1e36
        attention, [["s0", 16], [24, 16], [24, 16]], NAME, dtypes=[BFLOAT16], runs=[{"s0": 9}],
        rtol=0.02, atol=0.0, scale=1e18, level="sm_90",
    ),
    "attention_group_causal": Case(
        causal_heads, [[2, "s0", 48]] * 3, NAME, dtypes=[BFLOAT16], runs=[{"s0": 70}], atol=3e-2,
        level="sm_90",
    ),
    "attention_group_wide": Case(
        attention, [[64, 128], [128, 128], [128, 104]], NAME, dtypes=[BFLOAT16], atol=3e-2,
        level="sm_90",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)
