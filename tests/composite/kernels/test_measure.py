"""Timing a kernel as a node of a graph."""

import functools

import pytest
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import NameAttrList
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite import Composite
from composite.binding.records import PROGRAM, AttrValue
from composite.kernels import measure as measuring
from composite.kernels.measure import measure
from composite.ops import function_op


def test_what_has_no_kernel_is_refused_and_not_waited_for():
    """The thread that measures is the one that makes kernels."""

    @Composite("MeasuredWithoutKernel", inputs=["x: float"], outputs=["y: float"])
    def of_nobody_else(x):
        return tf.tanh(x) + 1.0

    def arguments(inputs):
        return {"x": inputs[0]}

    with pytest.raises(tf.errors.FailedPreconditionError, match="does not cover"):
        measure(of_nobody_else.op_name, arguments, {}, [tf.TensorSpec((3, 5), tf.float32)])


def test_a_function_without_a_kernel_is_refused_as_an_op_is():
    """Else two runs of its expansion would be compared."""

    @tf.function(input_signature=[tf.TensorSpec((3,), tf.float32)], autograph=False)
    def double(x):
        return x + x

    library = FunctionDefLibrary(function=[double.get_concrete_function().function_def])
    defined = function_op.define(function_op.canonical(library, "measured"))
    name = defined.function[0].signature.name

    def arguments(inputs):
        return {
            "args": [*inputs],
            "constants": [],
            "f": NameAttrList(name=name),
            "Tout": [tf.float32],
        }

    stamps = {PROGRAM: AttrValue(s=name.encode())}
    with pytest.raises(tf.errors.FailedPreconditionError, match="does not cover"):
        measure(function_op.NAME, arguments, stamps, [tf.TensorSpec((3,), tf.float32)])


def test_a_kernel_does_not_lose_for_a_load_that_ends():
    loaded, quiet, slow = ([(us * 1e-6, 560e-6, 5e-6)] * 8 for us in (600, 300, 800))
    for batches, ratio, left in (
        ([loaded, quiet, quiet], 0.53, 0),
        ([quiet, loaded, loaded], 0.53, 2),  # it has won
        ([slow, slow, slow], 1.43, 0),
    ):
        taken = iter(batches)
        rounds = measuring._settled(functools.partial(next, taken), 1)
        assert measuring._times(rounds, 1).ratio == pytest.approx(ratio, abs=0.01)
        assert len(list(taken)) == left


def test_what_the_clock_does_not_tell_is_neither_a_time_nor_a_verdict():
    empty = 5e-6
    for copies in (1, 16):
        # All that is measured is what runs of an empty function differ by.
        noise = [(empty + i % 3 * 1e-9, empty + i % 2 * 2e-9, empty) for i in range(9)]
        times = measuring._times(noise, copies)
        assert times.kernel_us >= 0.01 and times.expansion_us >= 0.01
        assert times.ratio == 1 and times.close
        # A kernel that is below what can be told, and an expansion that is not.
        found = measuring._times([(empty, empty + copies * 1e-6, empty)] * 9, copies)
        assert found.kernel_us >= 0.01 and found.ratio < 0.2 and not found.close


def test_a_time_is_no_less_than_what_runs_of_the_same_function_differ_by():
    """A busy machine: runs of the kernel are as long as those of the function without it."""
    empty, copies = 60e-6, 16
    late = [0, 20e-6, 35e-6, 5e-6, 60e-6]
    slow = measuring._times([(empty, empty + copies * 70e-6, empty + d) for d in late], copies)
    assert slow.kernel_us >= 1 and slow.expansion_us == pytest.approx(70) and not slow.close
    both = measuring._times([(empty, empty + 8e-6, empty + d) for d in late], copies)
    assert both.kernel_us == both.expansion_us and both.close
