"""Tensors that are computed alike are one; those that differ in anything are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import over, topological
from composite.compiler.tvm.passes.merge_equal import merge_equal
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of


def read(function: Any) -> Function:
    return read_function(library_of(function, [tf.TensorSpec([4, 6])]), [(4, 6)])


def ops(function: Function) -> list[str]:
    return sorted(t.node.title for t in topological(function.outputs))


def again(tensor: Tensor) -> Tensor:
    """The same computation once more, of the same input."""
    node = tensor.node
    if not node.operands:
        return tensor
    return replace(tensor, node=over(node, {t: again(t) for t in node.operands}))


def test_equal_tensors_are_one() -> None:
    function = read(lambda x: tf.exp(x) + tf.exp(x) * 2.0)
    (result,) = function.outputs
    apart = replace(result, node=over(result.node, {t: again(t) for t in result.node.operands}))
    doubled = replace(function, outputs=(apart,))
    assert ops(doubled).count("Exp") == 2
    assert ops(merge_equal(doubled)).count("Exp") == 1


def test_others_are_not() -> None:
    function = read(lambda x: (tf.exp(x) + tf.exp(x * 2.0), x[:, 1:] + x[:, :5]))
    assert ops(merge_equal(function)) == ops(function)


def test_outputs_stay_apart() -> None:
    """Each has a buffer of its own."""
    function = read(lambda x: (tf.exp(x), tf.sin(x)))
    first, _ = function.outputs
    merged = merge_equal(replace(function, outputs=(first, again(first))))
    assert merged.outputs[0] is not merged.outputs[1]
