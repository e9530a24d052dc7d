"""Which products take integers as they are stored."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import Convolution, MatMul
from composite.compiler.tvm.passes.narrow_products import narrow_products
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of


def wide(x: Any) -> Any:
    return tf.cast(x, tf.int32)


def found(function: Any, *arguments: tuple[tuple[int, ...], str]) -> Any:
    """The product of a function of arguments of such shapes and dtypes."""
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in arguments]
    read = read_function(library_of(function, specs), [shape for shape, _ in arguments])
    outputs = narrow_products(read).outputs
    stack, nodes = list(outputs), []
    while stack:
        nodes.append(stack.pop().node)
        stack += nodes[-1].operands
    return next(node for node in nodes if isinstance(node, MatMul | Convolution))


X, W = ((4, 6), "int8"), ((6, 5), "int8")


@pytest.mark.parametrize(
    ("function", "zeros"),
    [
        (lambda x, w: tf.matmul(wide(x), wide(w)), (0, 0)),
        (lambda x, w: tf.matmul(wide(x) - 3, wide(w) + 4), (3, -4)),
        (lambda x, w: tf.matmul(7 + wide(x) - 1, wide(w)), (-6, 0)),
        (lambda x, w: tf.matmul(tf.reshape(wide(x) - 2, [2, 12])[:, :6], wide(w)), (2, 0)),
    ],
)  # fmt: skip
def test_zero_points_are_the_products(function: Any, zeros: tuple[int, int]) -> None:
    node = found(function, X, W)
    assert [t.dtype for t in node.operands] == ["int8", "int8"]
    assert node.zeros == zeros


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: tf.matmul(2 * wide(x), wide(w)),
        lambda x, w: tf.matmul(wide(x) - 40000, wide(w)),  # no int16
        lambda x, w: tf.matmul(wide(x) - wide(x)[0, 0], wide(w)),  # the call decides it
        lambda x, w: tf.matmul(wide(x) - tf.range(6), wide(w)),
        lambda x, w: tf.matmul(5 - wide(x), wide(w)),
    ],
)
def test_others_stay(function: Any) -> None:
    node = found(function, X, W)
    assert {t.dtype for t in node.operands} == {"int32"}


def test_a_wide_factor_stays_with_the_other() -> None:
    node = found(lambda x, w: tf.matmul(wide(x), w), X, ((6, 5), "int32"))
    assert [t.dtype for t in node.operands] == ["int32", "int32"]


@pytest.mark.parametrize(("channels", "dtype"), [(3, "uint8"), (1, "int32")])
def test_convolutions_but_those_channel_by_channel(channels: int, dtype: str) -> None:
    def function(x: Any, w: Any) -> Any:
        return tf.nn.conv2d(wide(x) - 9, wide(w), 1, "SAME")

    node = found(function, ((1, 5, 5, 6), "uint8"), ((3, 3, channels, 6), "int8"))
    assert node.image.dtype == dtype
    assert node.zeros == ((9, 0) if dtype == "uint8" else (0, 0))
