"""Products of float32 on a GPU made of threads: right for every size and layout."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.compiler.tvm.strategy.cuda.test_tensor_product import dense, transposed
from tests.compiler.tvm.strategy.cuda.test_warp_group_product import turned
from tests.gpu.shim.cases import Batch, Case
from tests.gpu.shim.emulator import functions_of

NAME = "tiled_product"
SIZES = [
    {"s0": m, "s1": k, "s2": n}
    for m, k, n in ((1, 1, 1), (0, 3, 4), (3, 0, 4), (5, 7, 3), (70, 33, 130))
]


def far(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return tf.matmul(x, y, transpose_b=True)


def _case(function: object, shapes: object, tile: str, **more: object) -> Case:
    return Case(function, shapes, NAME, atol=3e-5, choices={"0.tiled.tile": tile}, **more)  # type: ignore[arg-type]


CASES = {
    "tiled": _case(lambda x, y: x @ y, [["s0", "s1"], ["s1", "s2"]], "64x64", runs=SIZES),
    "tiled_slices": _case(
        lambda x, y: x @ y, [["s0", "s1"], ["s1", "s2"]], "16x32",
        runs=[*SIZES, {"s0": 9, "s1": 150, "s2": 31}],
    ),
    "tiled_slices_transposed": _case(
        transposed, [["s1", "s0"], ["s2", "s1"]], "16x32", runs=SIZES[3:],
    ),
    "tiled_slices_dense": _case(
        dense, [["s0", 68], [68, 136], [136], ["s0", 136]], "16x32", runs=[{"s0": 3}],
    ),
    "tiled_by_call": _case(
        far, [[2, "s0", 20], [2, "s1", 20]], "by call", runs=[{"s0": 3, "s1": 66}], launches=3
    ),
    "tiled_transposed": _case(
        transposed, [["s1", "s0"], ["s2", "s1"]], "64x128", runs=SIZES[3:],
    ),
    "tiled_turned": _case(
        turned, [[36, "s0"], [36, 4096]], "64x128", runs=[{"s0": 0}, {"s0": 9}]
    ),
    "tiled_far": _case(
        far, [[32, "s0", 20], [32, "s1", 20]], "64x64", runs=[{"s0": 3, "s1": 66}],
    ),
    "tiled_dense": _case(
        dense, [["s0", 68], [68, 2048], [2048], ["s0", 2048]], "64x128", runs=[{"s0": 3}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


def test_threads_read_and_store_sixteen_bytes_at_a_time(batch: Batch) -> None:
    text = functions_of(batch.kernels["tiled_dense"])
    assert "composite_begin_copy<16>" in text
    assert "composite_copy<4>((&(out0[" in text
