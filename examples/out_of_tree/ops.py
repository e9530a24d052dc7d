"""The ops, and the calls that their kernels are compiled for. Needed to build the wheel only."""

import tensorflow as tf

from composite import Composite


@Composite(
    "GatedTanh",
    inputs=["x: T", "gate: T"],
    attrs=["alpha: float = 1.0"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def gated_tanh(x, gate, alpha):
    """tanh(x) * sigmoid(alpha * gate), as WaveNet gates its layers."""
    return tf.tanh(x) * tf.sigmoid(gate * alpha)


gated_tanh.add_signature(x=("float32", ("batch", 64)), gate=("float32", ("batch", 64)))
