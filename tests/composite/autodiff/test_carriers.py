"""Booleans that gradients of branches and loops carry in lists and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite import Composite
from composite.autodiff import carriers
from composite.ops import functions
from tests.composite.autodiff.test_gradient_programs import differentiated

pytestmark = pytest.mark.usefixtures("expansions_only")

SCALAR = np.zeros([0], np.int32)


@Composite("CarriersBranches", inputs=["x: double", "w: double"], outputs=["o: double"])
def branches(x, w):
    """The branch in a branch is a condition that the gradient keeps in an optional."""
    z = w
    if tf.reduce_sum(x) > 0.5:
        if tf.reduce_sum(w) > 0.5:
            z = x
    else:
        z = tf.exp(-tf.square(z)) + 0.5 * tf.tanh(w)
    return x * z + x


@pytest.mark.parametrize("x", [0.1, 0.9])
@pytest.mark.parametrize("w", [0.2, 0.8])
def test_a_third_order(x: float, w: float) -> None:
    inputs = [tf.constant([x], tf.float64), tf.constant([w], tf.float64)]
    found = differentiated(branches, 3)(*inputs)
    np.testing.assert_allclose(found, differentiated(branches.python_function, 3)(*inputs))


def _library(function: Any, *specs: tf.TensorSpec) -> Any:
    concrete = tf.function(function, input_signature=specs, autograph=False).get_concrete_function()
    inner = concrete.graph.as_graph_def().library.function
    return FunctionDefLibrary(function=[concrete.function_def, *inner])


def _lists(bits: Any, x: Any) -> Any:
    raw = tf.raw_ops
    made = raw.EmptyTensorList(element_shape=SCALAR, max_num_elements=-1, element_dtype=tf.bool)
    made = raw.TensorListPushBack(input_handle=made, tensor=bits[0])
    made, first = raw.TensorListPopBack(
        input_handle=made, element_shape=SCALAR, element_dtype=tf.bool
    )
    # What comes out goes into another: a list, and an optional beside a number.
    made = raw.TensorListPushBack(input_handle=made, tensor=tf.logical_not(first))
    made = raw.TensorListPushBack(input_handle=made, tensor=first)
    stacked = raw.TensorListStack(input_handle=made, element_shape=SCALAR, element_dtype=tf.bool)
    both = raw.OptionalFromValue(components=[x, first])
    types, shapes = [tf.float32, tf.bool], [tf.TensorShape([])] * 2
    value, bit = raw.OptionalGetValue(optional=both, output_types=types, output_shapes=shapes)
    return stacked, value, bit, first


@pytest.mark.parametrize("bit", [True, False])
def test_what_comes_out_is_what_went_in(bit: bool) -> None:
    specs = tf.TensorSpec([2], tf.bool), tf.TensorSpec([], tf.float32)
    library = _library(_lists, *specs)
    carriers.without_booleans(library)
    body = functions.body(library)
    carried = {
        dtype
        for node in body.graph_def.node
        for attr in ("element_dtype", "Toutput_types", "output_types")
        if attr in node.attr
        for dtype in [node.attr[attr].type, *node.attr[attr].list.type]
    }
    assert tf.int8.as_datatype_enum in carried and tf.bool.as_datatype_enum not in carried
    traced = tf.function(lambda *xs: functions.inline(body, xs), autograph=False)
    stacked, value, other, first = traced(tf.constant([bit, True]), tf.constant(2.5))
    assert stacked.numpy().tolist() == [not bit, bit]
    assert (value.numpy(), other.numpy(), first.numpy()) == (2.5, bit, bit)


def test_a_library_without_booleans_stays() -> None:
    def plain(x: Any) -> Any:
        ones = tf.TensorArray(tf.float32, size=1).write(0, x)
        return tf.where(x > 0, ones.stack(), 0)

    library = _library(plain, tf.TensorSpec([], tf.float32))
    before = library.SerializeToString(deterministic=True)
    carriers.without_booleans(library)
    assert library.SerializeToString(deterministic=True) == before
