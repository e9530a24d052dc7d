"""Timing a kernel as a node of a graph."""

import pytest
import tensorflow as tf

from composite.jit.measure import measure
from tests.composite import dense_ops


def test_what_has_no_kernel_is_refused_and_not_waited_for():
    """The thread that measures is the one that makes kernels."""
    specs = [tf.TensorSpec(shape, tf.float32) for shape in ((3, 5), (4, 5), (4,))]

    def arguments(inputs):
        return {**dict(zip(("input_", "filter_", "bias"), inputs, strict=True)), "act": "RELU"}

    with pytest.raises(tf.errors.FailedPreconditionError, match="does not cover"):
        measure(dense_ops.dense.op_name, arguments, {}, specs)
