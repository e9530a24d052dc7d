"""Reshapes of anchors move behind the element-wise work, and only where the order stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.tensor import Pointwise, Reshape
from composite.compiler.tvm.passes.raising import raise_reshapes
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of


def raised(function: Any, *shapes: tuple[int | str, ...]) -> Any:
    specs = [tf.TensorSpec([d if isinstance(d, int) else None for d in s]) for s in shapes]
    return raise_reshapes(read_function(library_of(function, specs), shapes))


def dense(x: Any, w: Any, b: Any) -> Any:
    y = tf.matmul(tf.reshape(x, [-1, 8]), w)
    return tf.nn.relu(tf.reshape(y, [2, -1, 6]) + b)


@pytest.mark.parametrize("length", [3, "s0"])
def test_bias_joins_the_product(length: Any) -> None:
    (result,) = raised(dense, (2, length, 8), (8, 6), (6,)).outputs
    assert isinstance(result.node, Reshape)
    relu = result.node.operand
    assert relu.rank == 2 and isinstance(relu.node, Pointwise)
    (bias_added,) = relu.node.operands
    assert isinstance(bias_added.node.operands[0].node, MatMul)


def test_one_stage_and_the_same_values(compiler: Any) -> None:
    random = np.random.default_rng(0)
    x, r = (random.uniform(-1, 1, s).astype(np.float32) for s in ((2, 3, 8), (2, 3, 6)))
    w, b = (random.uniform(-1, 1, s).astype(np.float32) for s in ((8, 6), (1, 6)))

    def function(x: Any, w: Any, b: Any, r: Any) -> Any:
        y = dense(x, w, b)
        return tf.tanh(y * 0.5) + r, y

    loaded = compiler.compare(function, x, w, b, r, rtol=1e-5, atol=1e-5)
    assert "elementwise" not in loaded.kernel.strategy


@pytest.mark.parametrize("shape", [(3, 1), (3, 6), (2, 1, 1)])
def test_operands_along_other_dimensions_stay(compiler: Any, shape: tuple[int, ...]) -> None:
    """What varies along a dimension that the product does not have cannot join it."""
    random = np.random.default_rng(0)
    arrays = [random.uniform(-1, 1, s).astype(np.float32) for s in ((2, 3, 8), (8, 6), shape)]
    (result,) = raised(dense, *(a.shape for a in arrays)).outputs
    assert isinstance(result.node, Pointwise)
    compiler.compare(dense, *arrays, rtol=1e-5, atol=1e-5)


def test_what_was_moved_still_comes_from_its_node() -> None:
    function = raised(dense, (2, 3, 8), (8, 6), (6,))
    relu = function.outputs[0].node.operand
    product = relu.node.operands[0].node.operands[0]
    assert [function.origins[t] for t in (relu, product)] == ["Relu", "MatMul"]
    assert not set(function.parameters) & function.origins.keys()


def test_nothing_to_raise_is_left_alone() -> None:
    function = read_function(library_of(lambda x: tf.exp(x) + 1.0, [tf.TensorSpec([3])]), [(3,)])
    assert raise_reshapes(function).outputs == function.outputs


def test_operands_of_joins_are_raised_too_and_minimums_stay() -> None:
    def function(x: Any, w: Any, b: Any) -> Any:
        y = dense(x, w, b)
        return tf.concat([y[:, 2:], y[:, :1]], 1)

    result = raised(function, (2, "s0", 8), (8, 6), (6,))
    assert result.minimums == {"s0": 2}
    parts = [part.node.operand for part in result.outputs[0].node.operands]
    assert parts[0] is parts[1] and isinstance(parts[0].node, Reshape)
