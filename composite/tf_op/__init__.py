"""Functions that TVM compiled, or that live in its runtime, as TensorFlow ops.

    addone = composite.tf_op.Module("addone.so").func("addone", output_shape=[2])
    y = addone(x)  # eager, tf.function, Session: one CompositeTvmCall node

docs/tvm-functions.md is the guide.
"""

from composite.tf_op.function import TvmFunction
from composite.tf_op.module import Module, function
from composite.tf_op.output_shapes import same_as

__all__ = ["Module", "TvmFunction", "function", "same_as"]
