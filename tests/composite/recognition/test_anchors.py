"""What is read of an op's program: the kinds that its expansions must have, and its conditions."""

from __future__ import annotations

import tensorflow as tf

from composite import Composite
from composite.recognition.anchors import has_conditions_on_dims
from composite.recognition.vocabulary import vocabulary
from tests.composite.recognition import recognized_ops as ops


@Composite(
    "AnchoredEither",
    inputs=["x: T", "w: T"],
    attrs=["approximate: bool = false"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def either(x, w, approximate):
    """A function of elements by an attribute, and a product by the rank of a matrix."""
    if x.dtype not in (tf.float32, tf.float64):
        raise TypeError("floats only")
    x = tf.tanh(x) if approximate else tf.math.erf(x)
    size = tf.cast(tf.shape(x)[0], x.dtype)
    return x @ w / size


@Composite(
    "AnchoredBySize", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
)
def by_size(x):
    """Another function where rows are long."""
    return tf.sin(x) if x.shape[-1] > 8 else tf.cos(tf.exp(x))


def test_one_of_several_sets_is_in_every_expansion() -> None:
    words = vocabulary(either)
    assert words.anchors == {frozenset(["contract", "Tanh"]), frozenset(["contract", "Erf"])}
    assert words.may_be_in(["contract", "Erf", "exp"])
    assert not words.may_be_in(["contract", "exp"])
    assert vocabulary(by_size).anchors == {frozenset(["Sin"]), frozenset(["Cos", "exp"])}
    assert vocabulary(ops.rotary).anchors == {frozenset(["Sin", "Cos"])}


def test_conditions_on_dims() -> None:
    assert has_conditions_on_dims(by_size.program)
    assert not has_conditions_on_dims(either.program)
    assert has_conditions_on_dims(ops.attention.program)  # a loop, over masks
