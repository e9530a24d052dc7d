"""An op of the tests of TensorFlow's dispatch."""

import tensorflow as tf

from composite import Composite


@Composite("DispatchedLeaky", inputs=["x: float", "bias: float"], attrs=["slope: float = 0.5"],
           outputs=["y: float"])  # fmt: skip
def dispatched_leaky(x, bias, slope):
    y = x + bias
    return tf.maximum(y, slope * y)
