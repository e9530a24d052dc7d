"""The one op of this example: a dense layer with its activation, as a single node."""

import tensorflow as tf

from composite import Composite


@Composite(
    "FusedFullyConnected",
    inputs=["input_: T", "filter_: T", "bias: T"],
    attrs=['act: {"", "RELU", "RELU6", "TANH"} = ""'],
    derived_attrs=["T: {float, double, half, bfloat16}"],
    outputs=["o: T"],
)
def fused_fully_connected(input_, filter_, bias, act):
    """Dense layer with its activation: act(input_ @ filter_ᵀ + bias).

    Args:
        input_: [batch, inputs].
        filter_: [units, inputs], one row a unit.
        bias: [units].
        act: the activation; "" is none.

    Returns:
        [batch, units].
    """
    product = tf.raw_ops.MatMul(a=input_, b=filter_, transpose_b=True)
    o = tf.raw_ops.BiasAdd(value=product, bias=bias)
    if act == "RELU":
        return tf.raw_ops.Relu(features=o)
    elif act == "RELU6":
        return tf.raw_ops.Relu6(features=o)
    elif act == "TANH":
        return tf.raw_ops.Tanh(x=o)
    return o
