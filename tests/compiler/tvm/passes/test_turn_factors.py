"""Few rows multiply a factor as it lies in memory; a column is a row the other way round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.turn_factors import turn_factors
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def turned(function: Callable[..., Any], *arrays: np.ndarray) -> list[tuple[Any, bool]]:
    """The shape of each product after the pass, and whether its factor is stored as [N, K]."""
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arrays]
    read = read_function(library_of(function, specs), [a.shape for a in arrays])
    order = topological(turn_factors(read).outputs)
    return [(t.shape, t.node.transpose_b) for t in order if isinstance(t.node, MatMul)]


def scores(q: Any, k: Any) -> Any:
    return tf.einsum("bquh,bkuh->buqk", q, k)


def of_columns(q: Any, k: Any) -> Any:
    return tf.einsum("bkuh,bquh->bukq", k, q) * 2.0


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_few_rows_multiply_keys_along_their_memory(compiler: Any, rows: int) -> None:
    arrays = numbers(2, rows, 3, 32), numbers(2, 19, 3, 32)
    assert turned(scores, *arrays) == [((2, 3, rows, 19), True)]
    compiler.compare(scores, *arrays, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("transposed", [False, True])
def test_one_column_is_one_row(compiler: Any, transposed: bool) -> None:
    arrays = numbers(2, 1, 3, 32), numbers(2, 19, 3, 32)
    assert turned(of_columns, *arrays) == [((2, 3, 1, 19), True)]
    compiler.compare(of_columns, *arrays, rtol=1e-5, atol=1e-5)

    def product(a: Any, b: Any) -> Any:
        return tf.matmul(a, b, transpose_a=transposed, transpose_b=not transposed)

    a = numbers(5, 16, 19) if transposed else numbers(5, 19, 16)
    b = numbers(5, 16, 1) if transposed else numbers(5, 1, 16)
    assert turned(product, a, b) == [((5, 1, 19), not transposed)]
    compiler.compare(product, a, b, rtol=1e-5, atol=1e-5)


def test_of_sizes_that_the_call_knows(compiler: Any) -> None:
    arrays = numbers(2, 1, 3, 32), numbers(2, 19, 3, 32)
    for function in (scores, of_columns):
        compiler.compare(
            function, *arrays, shapes=[("s0", 1, 3, 32), ("s0", "s1", 3, 32)], rtol=1e-5, atol=1e-5
        )


def test_what_stays(compiler: Any) -> None:
    assert turned(scores, numbers(2, 8, 3, 32), numbers(2, 19, 3, 32)) == [((2, 3, 8, 19), False)]
    dense = numbers(9, 16), numbers(16, 1)
    assert turned(tf.matmul, *dense) == [((9, 1), False)]
    values = numbers(2, 3, 1, 19), numbers(2, 19, 3, 32)

    def weighted(p: Any, v: Any) -> Any:
        return tf.einsum("buqk,bkuh->buqh", p, v)

    assert turned(weighted, *values) == [((2, 3, 1, 32), False)]
    compiler.compare(weighted, *values, rtol=1e-5, atol=1e-5)
