"""Products in TF32 of four warps together, on a GPU made of threads: for every size and layout."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.compiler.tvm.strategy.cuda.test_tensor_product import dense, heads, transposed
from tests.gpu.shim.cases import Batch, Case
from tests.gpu.shim.emulator import functions_of

NAME = "warp_group_tf32"


def _case(function: object, shapes: object, *, atol: float = 2e-2, **more: object) -> Case:
    return Case(function, shapes, NAME, atol=atol, level="sm_90", tensor_float_32=True, **more)  # type: ignore[arg-type]


CASES = {
    "tf32_dense": _case(
        dense, [["s0", 68], [68, 136], [136], ["s0", 136]],
        runs=[{"s0": 0}, {"s0": 1}, {"s0": 270}], choices={"0.warps.tile": "128x256"},
    ),
    "tf32_default": _case(dense, [["s0", 36], [36, 44], [44], ["s0", 44]], runs=[{"s0": 70}]),
    "tf32_transposed": _case(
        transposed, [[40, 88], ["s0", 40]], runs=[{"s0": 72}],
        choices={"0.warps.tile": "128x64"},
    ),
    "tf32_heads": _case(
        heads, [[2, "s0", 32], [2, "s1", 32]], runs=[{"s0": 5, "s1": 65}], launches=3
    ),
    "tf32_batches": _case(
        tf.matmul, [[3, "s0", 24], [24, 48]], runs=[{"s0": 70}],
        choices={"0.warps.tile": "128x128"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


def test_the_factor_whose_inner_dimension_is_near_stays_in_shared_memory(batch: Batch) -> None:
    for name in CASES:
        assert "composite_wgmma_held_tf32<" in functions_of(batch.kernels[name])
