"""Tensors as they are made: what moves below what, and what stays one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.graph import constant, is_zero, pointwise, reshape
from composite.compiler.tvm.ir.tensor import Parameter, Reshape, Tensor
from composite.compiler.tvm.ir.walk import topological

X, Y = (Tensor((4,), "float32", Parameter(i)) for i in range(2))


def op(name: str, *operands: Tensor) -> Tensor:
    return pointwise(name, lambda _, *values: values[0], operands, "float32")


def test_a_reshape_goes_below_element_wise_work() -> None:
    moved = reshape(op("A", X, Y), (2, 2))
    assert moved.node.title == "A"
    assert all(isinstance(t.node, Reshape) for t in moved.node.operands)


def test_what_is_read_twice_is_one_tensor_under_another_shape() -> None:
    """It would otherwise be copied for each path to it: 2^60 of them."""
    tensor = X
    for _ in range(60):
        tensor = op("A", tensor, tensor)
    assert len(topological([reshape(tensor, (2, 2))])) == 62


def test_so_is_what_several_tensors_are_made_of() -> None:
    common = op("A", X, Y)
    first, second = (reshape(op(name, common), (4, 1)) for name in "BC")
    assert first.node.operands == second.node.operands


def test_a_pack_of_a_body_that_doubles(compiler: Any) -> None:
    def function(x: Any) -> Any:
        y = x
        for _ in range(40):
            y = (y + y) * 0.5
        return tf.stack([y, y + 1.0], axis=-1)

    compiler.compare(function, np.arange(12.0, dtype=np.float32).reshape(3, 4))


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, np.nan])
@pytest.mark.parametrize("title", ["Fill", "Cast", "BroadcastTo", "Identity"])
def test_zeros_are_known_through_what_repeats_them(title: str, value: float) -> None:
    one = constant(np.array(value, np.float32), "float32")
    table = constant(np.array([0, value, 0, 0], np.float32), "float32")
    for tensor in (one, table):
        assert is_zero(tensor) == (value == 0)
        assert is_zero(reshape(op(title, tensor), tensor.shape)) == (value == 0)
        assert not is_zero(op("Exp", tensor))
    assert not is_zero(op(title, X))
