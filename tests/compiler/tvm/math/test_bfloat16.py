"""Rounding to bfloat16, by instruction and without: the nearest, ties to even, NaN as it is."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tvm import tirx

from composite.compiler.tvm import Target
from composite.compiler.tvm.math.numeric import STORAGE, loaded, round_to, to_storage
from composite.compiler.tvm.tir.block import Block

HOST = Target.host().isa
BF16 = np.dtype(ml_dtypes.bfloat16)
TIES = [1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3.3895314e38, 2**-126, 0.0, -0.0]


@pytest.mark.parametrize("isa", sorted({"x86-64-v2", HOST}))
@pytest.mark.parametrize("size", [16, 45])
def test_rounding_of_what_is_stored(compiler: Any, isa: str, size: int) -> None:
    x = numbers(size)
    kernel = compiler.compile(lambda x: tf.cast(x, tf.bfloat16), [x], target=Target.of(isa, 1))
    (found,) = kernel([x], [x.shape], [BF16])
    same(found, x.astype(BF16))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_is_rounded_already_is_not_rounded_again(dtype: str) -> None:
    block = Block()
    memory = tirx.decl_buffer((16,), STORAGE.get(dtype, dtype))
    value = loaded(block, block.load(memory, 0, 16), dtype)
    stored = to_storage(block, value, dtype)
    assert round_to(block, value, dtype) is value
    assert to_storage(block, value, dtype) is stored is block.let(stored)
    twice = block.let(value + value)
    once = round_to(block, twice, dtype)
    assert once is not twice
    assert round_to(block, once, dtype) is once
    other = {"bfloat16": "float16", "float16": "bfloat16"}[dtype]
    assert to_storage(block, value, other) is not stored


@pytest.mark.parametrize("n", [16, 48])
def test_rounding_of_products(compiler: Any, n: int) -> None:
    """Sums of one factor each and of zeros, to which a number is added before they are rounded."""
    random = np.random.default_rng(0)
    x, w = np.ones((8, 9)).astype(BF16), np.zeros((9, n)).astype(BF16)
    w[0] = random.standard_normal(n).astype(BF16)

    def function(x: Any, w: Any) -> Any:
        return tf.matmul(x, w) * tf.constant(1.01, tf.bfloat16)

    kernel = compiler.compile(function, [x, w])
    (found,) = kernel([x, w], [(8, n)], [BF16])
    factor = np.float32(BF16.type(1.01))
    same(found, np.broadcast_to((w[0].astype(np.float32) * factor).astype(BF16), (8, n)))


def numbers(size: int) -> np.ndarray:
    """Those between two that bfloat16 has, the special ones, and others."""
    special = [*TIES, np.inf, -np.inf, np.nan]
    others = np.random.default_rng(size).standard_normal(size - len(special)) * 1e3
    return np.concatenate([special, others]).astype(np.float32)


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    """Of the same bits, but for those of NaN."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    real = ~np.isnan(wanted)
    np.testing.assert_array_equal(found.view(np.uint16)[real], wanted.view(np.uint16)[real])
