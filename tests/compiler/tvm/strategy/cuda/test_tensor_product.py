"""Products on tensor cores, on a GPU made of threads: right for every size, layout and dtype."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.gpu.shim.cases import BFLOAT16, Batch, Case
from tests.gpu.shim.emulator import functions_of

FEW = {"0.tensor.tile": "64x64", "0.tensor.stages": 2}


def dense(x: Any, w: Any, b: Any, y: Any) -> Any:
    """A dense layer with all that may follow it."""
    return tf.nn.relu(x @ w + b) + y


def transposed(x: Any, y: Any) -> Any:
    return tf.matmul(x, y, transpose_a=True, transpose_b=True)


def heads(q: Any, k: Any) -> Any:
    """Scores of attention, of heads that lie side by side in a row."""
    q, k = (tf.transpose(tf.reshape(x, [2, -1, 2, 16]), [0, 2, 1, 3]) for x in (q, k))
    return tf.matmul(q, k, transpose_b=True) * tf.cast(0.25, q.dtype)


CASES = {
    "tensor_dense": Case(
        dense, [["s0", 72], [72, 136], [136], ["s0", 136]], "tensor_product",
        dtypes=[np.float16], runs=[{"s0": 0}, {"s0": 1}, {"s0": 150}], atol=4e-3, launches=2,
    ),
    "tensor_wide": Case(
        dense, [["s0", 128], [128, 80], [80], ["s0", 80]], "tensor_product",
        dtypes=[BFLOAT16], runs=[{"s0": 140}], atol=3e-2, choices={"0.tensor.tile": "128x128"},
    ),
    "tensor_largest": Case(
        dense, [["s0", 72], [72, 264], [264], ["s0", 264]], "tensor_product",
        dtypes=[np.float16], runs=[{"s0": 130}], atol=4e-3, choices={"0.tensor.tile": "128x256"},
    ),
    "tensor_transposed": Case(
        transposed, [[40, "s0"], [24, 40]], "tensor_product",
        dtypes=[np.float16], runs=[{"s0": 70}], atol=4e-3, choices={"0.tensor.tile": "128x64"},
    ),
    "tensor_ragged": Case(
        lambda x, y: x @ y, [["s0", "s1"], ["s1", "s2"]], "tensor_product", dtypes=[BFLOAT16],
        runs=[{"s0": m, "s1": k, "s2": n} for m, k, n in ((1, 1, 1), (3, 0, 4), (66, 33, 70))],
        atol=2e-2, choices=FEW,
    ),
    "tensor_odd": Case(
        lambda x, y: x @ y, [["s0", 33], [33, 20]], "tensor_product", dtypes=[np.float16],
        runs=[{"s0": 9}], atol=2e-3,
    ),
    "tensor_heads": Case(
        heads, [[2, "s0", 32], [2, "s1", 32]], "tensor_product", dtypes=[np.float16],
        runs=[{"s0": 5, "s1": 65}], atol=2e-3, launches=2,
    ),
    "tensor_batches": Case(
        tf.matmul, [[3, "s0", 24], [24, 48]], "tensor_product", dtypes=[np.float16],
        runs=[{"s0": 70}], atol=4e-3, choices=FEW,
    ),
    "tensor_float": Case(
        dense, [["s0", 35], [35, 72], [72], ["s0", 72]], "tensor_product",
        runs=[{"s0": 1}, {"s0": 66}], atol=2e-2, tensor_float_32=True, launches=2,
    ),
    "tensor_float_odd": Case(  # four warps copy 16 bytes at a time
        dense, [["s0", 68], [68, 71], [71], ["s0", 71]], "tensor_product",
        runs=[{"s0": 66}], atol=2e-2, tensor_float_32=True, level="sm_90", launches=2,
    ),
    "tensor_float_transposed": Case(
        transposed, [[20, "s0"], [68, 20]], "tensor_product", runs=[{"s0": 66}], atol=2e-2,
        tensor_float_32=True, choices={"0.tensor.tile": "64x64"},
    ),
    "tensor_float_far": Case(  # what four warps read has its inner dimension near
        lambda x, y: tf.matmul(x, y, transpose_a=True), [[36, "s0"], [36, 64]], "tensor_product",
        runs=[{"s0": 66}], atol=2e-2, tensor_float_32=True, level="sm_90",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


def test_factors_are_copied_behind_the_threads_as_many_bytes_at_once_as_sizes_allow(
    batch: Batch,
) -> None:
    copies = {
        "tensor_dense": {"composite_begin_copy<16>"},
        "tensor_heads": {"composite_begin_copy<16>"},
        "tensor_float": {"composite_begin_copy<4>", "composite_begin_copy<16>"},
        "tensor_odd": {"composite_begin_copy<8>"},
        "tensor_ragged": set(),
    }
    for name, wanted in copies.items():
        text = functions_of(batch.kernels[name])
        assert {*re.findall(r"composite_begin_copy<\d+>", text)} == wanted
    assert [str(a) for a in batch.kernels["tensor_odd"].plan.aligned] == ["in1", "out0"]


def test_what_follows_a_product_is_read_and_stored_in_vectors(batch: Batch) -> None:
    text = functions_of(batch.kernels["tensor_dense"])
    assert "composite_copy<8>((&(out0[" in text
    assert ", (&(in3[" in text


def test_float32_is_rounded_for_tensor_cores_only_where_it_is_allowed(batch: Batch) -> None:
    assert "composite_mma_tf32" in functions_of(batch.kernels["tensor_float"])
    assert batch.kernels["tiled"].strategy == "tiled_product"
