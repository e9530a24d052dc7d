"""Ops that the tests of this folder share; also built and loaded by them."""

import tensorflow as tf

from composite import Composite


@Composite(
    "TestDense",
    inputs=["input_: T", "filter_: T", "bias: T"],
    attrs=['act: {"", "RELU", "RELU6", "TANH"} = ""'],
    derived_attrs=["T: {float, double, half, bfloat16}"],
    outputs=["o: T"],
)
def dense(input_, filter_, bias, act):
    """Dense layer with its activation: act(input_ @ filter_ᵀ + bias).

    input_ is [batch, k], filter_ is [n, k], bias is [n].
    """
    product = tf.raw_ops.MatMul(a=input_, b=filter_, transpose_b=True)
    result = tf.raw_ops.BiasAdd(value=product, bias=bias)
    if act == "RELU":
        return tf.raw_ops.Relu(features=result)
    elif act == "RELU6":
        return tf.raw_ops.Relu6(features=result)
    elif act == "TANH":
        return tf.raw_ops.Tanh(x=result)
    return result


@Composite(
    "TestTwoLayers",
    inputs=["x: T", "w: T", "b: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["hidden: T", "y: T"],
)
def two_layers(x, w, b):
    """Two dense layers with one set of weights, w square."""
    hidden = dense(x, w, b, act="RELU")
    return hidden, dense(hidden, w, b, act="TANH")


@Composite(
    "TestScale",
    inputs=["x: float", "times: int32"],
    attrs=["factor: float = 0.5"],
    outputs=["y: float"],
)
def scale(x, times, factor):
    """Product of x, an attribute and an integer input."""
    return x * factor * tf.raw_ops.Cast(x=times, DstT=tf.float32)
