"""Products whose factor is repeated for each of some rows are products of these rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.tensor import Pointwise
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.share_factors import share_factors
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def repeated(x: Any, axis: int) -> Any:
    return tf.repeat(x, 2, axis=axis)


def attention(q: Any, k: Any, v: Any) -> Any:
    k, v = repeated(k, 2), repeated(v, 2)
    weights = tf.nn.softmax(tf.einsum("bquh,bkuh->buqk", q, k))
    return tf.einsum("buqk,bkuh->bquh", weights, v)


def broadcast(q: Any, k: Any) -> Any:
    """Repeated by a broadcast, a factor that is not transposed, and rows that are columns."""
    k = tf.reshape(tf.broadcast_to(k[:, :, None], [2, 3, 2, 16, 8]), [2, 6, 16, 8])
    return tf.matmul(q, k, transpose_a=True) * 2.0


def products(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[list[Any], list[Any]]:
    """The shapes of the products of a function, and the repetitions, after the pass."""
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arrays]
    read = read_function(library_of(function, specs), [a.shape for a in arrays])
    order = topological(share_factors(read).outputs)
    shapes = [t.shape for t in order if isinstance(t.node, MatMul)]
    repeats = [t for t in order if isinstance(t.node, Pointwise) and t.node.op in ("Tile",)]
    return shapes, repeats


def test_heads_in_groups_share_keys_and_values(compiler: Any) -> None:
    arrays = numbers(4, 1, 6, 32), numbers(4, 19, 3, 32), numbers(4, 19, 3, 32)
    shapes, repeats = products(attention, *arrays)
    assert shapes == [(4, 3, 2, 19), (4, 3, 2, 32)]
    assert not repeats
    compiler.compare(attention, *arrays, rtol=1e-4, atol=1e-5)


def test_of_sizes_that_the_call_knows(compiler: Any) -> None:
    arrays = numbers(4, 1, 6, 32), numbers(4, 19, 3, 32), numbers(4, 19, 3, 32)
    shapes = [("s0", 1, 6, 32), ("s0", "s1", 3, 32), ("s0", "s1", 3, 32)]
    compiler.compare(attention, *arrays, shapes=shapes, rtol=1e-4, atol=1e-5)


def test_a_broadcast_factor_and_transposed_rows(compiler: Any) -> None:
    arrays = numbers(2, 6, 16, 1), numbers(2, 3, 16, 8)
    shapes, _ = products(broadcast, *arrays)
    assert shapes == [(2, 3, 2, 8)]
    compiler.compare(broadcast, *arrays, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (attention, ((4, 5, 6, 32), (4, 19, 3, 32), (4, 19, 3, 32))),  # rows that would be moved
        (lambda q, k: tf.matmul(q, repeated(k, 0)), ((6, 2, 1, 8), (3, 2, 8, 4))),  # not the last
        (lambda q, k: tf.matmul(q, tf.tile(k, [1, 2, 1])), ((2, 1, 8), (2, 4, 4))),  # terms
        (lambda q, k: tf.matmul(q, tf.tile(k, [2, 1, 1])), ((6, 1, 8), (3, 8, 4))),  # in turns
    ],
)
def test_what_stays(compiler: Any, function: Callable[..., Any], shapes: Any) -> None:
    arrays = [numbers(*shape) for shape in shapes]
    made, repeats = products(function, *arrays)
    assert repeats
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arrays]
    read = read_function(library_of(function, specs), [a.shape for a in arrays])
    assert made == [t.shape for t in topological(read.outputs) if isinstance(t.node, MatMul)]
    compiler.compare(function, *arrays, rtol=1e-4, atol=1e-5)
