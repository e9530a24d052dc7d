"""Kernels that live as long as somebody holds them."""

import ctypes
import gc
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.ops import call, kept

FLOAT = tf.float32.as_datatype_enum


def _called(function, *, inputs=1):
    """A node that calls a function, kept; nobody else holds the function."""
    node = NodeDef(name="called", op="PartitionedCall")
    node.attr["f"].func.name = function.name.decode()
    node.attr["Tin"].list.type[:] = [FLOAT] * inputs
    node.attr["Tout"].list.type[:] = [FLOAT] * len(function.outputs)
    return kept.keep(node, [FLOAT] * inputs, [FLOAT] * len(function.outputs))


def _traced(function, inputs=1):
    specs = [tf.TensorSpec(None, tf.float32)] * inputs
    return tf.function(function, input_signature=specs, autograph=False).get_concrete_function()


def test_an_op_that_is_waited_for_and_one_that_is_not():
    traced = _traced(lambda x, y: [x + y, x * y], inputs=2)
    run = _called(traced, inputs=2)
    for x, y in ((2.0, 3.0), (5.0, 7.0)):
        assert [float(z) for z in run([tf.constant(x), tf.constant(y)])] == [x + y, x * y]
    node = NodeDef(name="sum", op="AddV2", input=["x", "y"])
    node.attr["T"].type = FLOAT
    run = kept.keep(node, [FLOAT, FLOAT], [FLOAT])
    np.testing.assert_array_equal(
        run([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])])[0], [4, 6]
    )


def test_what_a_function_has_made_ends_with_its_kernel():
    """A constant of its graph, of which TensorFlow makes several copies."""

    def bytes_in_use():
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def once(seed):
        constant = np.random.default_rng(seed).standard_normal((1024, 2048), np.float32)
        run = _called(_traced(lambda x: [tf.reduce_sum(x * tf.constant(constant))]))
        assert np.isfinite(run([tf.constant(1.0)])[0])

    for seed in range(3):
        once(seed)
    before = bytes_in_use()
    for seed in range(3, 15):
        once(seed)
    assert bytes_in_use() - before < 4 * 8 << 20  # each of the 12 had a constant of 8 MiB


def test_errors_are_those_of_the_op():
    failing = _traced(lambda x: [tf.reshape(x, [7])])
    run = _called(failing)
    with pytest.raises(tf.errors.InvalidArgumentError, match="reshape"):
        run([tf.ones(3)])
    np.testing.assert_array_equal(run([tf.ones(7)])[0], np.ones(7))
    with pytest.raises(tf.errors.NotFoundError):
        kept.keep(NodeDef(name="none", op="NoSuchOpAnywhere"), [], [])


@pytest.mark.parametrize("given", [tf.constant(1, tf.int32), tf.constant(1.0, tf.float64)])
def test_other_dtypes_are_refused(given):
    run = _called(_traced(lambda x: [x]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        run([given])


def test_other_tensors_than_kernels_and_texts_that_are_no_nodes_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="no NodeDef"):
        call.eager_op("CompositeKeep", 1, [tf.constant(b"\xff\xff")], ())
    with pytest.raises(tf.errors.InvalidArgumentError, match="no scalar"):
        call.eager_op("CompositeKeep", 1, [tf.constant([b""])], ())
    other = tf.raw_ops.EmptyTensorList(
        element_shape=tf.constant(-1), max_num_elements=1, element_dtype=tf.float32
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="not made by CompositeKeep"):
        call.eager_op("CompositeRunKept", 1, [other], ("Targs", [], "Tresults", [FLOAT]))


def test_several_threads_call_one_kernel():
    run = _called(_traced(lambda x: [tf.reduce_sum(x * x)]))
    found = {}

    def calls(number):
        x = tf.fill([100], float(number))
        found[number] = {float(run([x])[0]) for _ in range(50)}

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: {100.0 * n * n} for n in range(4)}
