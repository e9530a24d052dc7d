"""Graphs are freed of what nobody reads; the shapes that a region asks for are its own."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from composite.binding import settings as options
from tests.runtime import kernel_support as k
from tests.runtime.regions.test_form_regions import assert_close, with_regions, without
from tests.runtime.regions.test_partition import (
    FLOATS,
    calls,
    library_of,
    ops,
    regions,
    regions_of,
    traced,
)


def test_what_nobody_reads() -> None:
    def body(x: Any) -> Any:
        y = tf.exp(x) * 2.0
        tf.matmul(tf.sin(y), x)
        return y

    rewritten, found = regions(body)
    (region,) = found.values()
    assert not {"MatMul", "Sin"} & {*ops(region), *ops(rewritten)}
    assert len(region.signature.output_arg) == 1
    x = tf.ones([4, 4])
    assert_close(with_regions(body, x)[0], [tf.exp(x) * 2.0])


def test_what_has_an_effect_or_is_waited_for_stays() -> None:
    variable = tf.Variable(1.0)

    def body(x: Any) -> Any:
        waited = tf.tanh(x)
        variable.assign_add(1.0)
        with tf.control_dependencies([waited]):
            return tf.exp(x) * 2.0 + tf.sin(x)

    rewritten, found = regions(body)
    assert ops(rewritten)["AssignAddVariableOp"] == 1
    assert ops(rewritten)["Tanh"] == 1
    assert len(calls(rewritten)) == len(found)
    with_regions(body, tf.ones([4, 4]))
    assert_close([variable], [2.0])


def test_what_callers_wait_for_stays() -> None:
    def body(x: Any) -> Any:
        tf.tanh(x, name="end")
        return tf.exp(x) * 2.0

    library = library_of(traced(body, [FLOATS]))
    assert ops(regions_of(library)[0])["Tanh"] == 0
    library.function[0].signature.control_output.append("end")
    library.function[0].control_ret["end"] = "end"
    assert ops(regions_of(library)[0])["Tanh"] == 1


IMAGES = tf.TensorSpec([None, 6, 6, 2])


def convolved(filters: tf.Variable) -> Any:
    """The gradients of a convolution, which ask one ShapeN for two shapes."""

    def body(x: Any, dy: Any) -> Any:
        image, filter_sizes = tf.shape_n([x, filters])
        kinds = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        dy = tf.tanh(dy) * 2.0
        dx = tf.raw_ops.Conv2DBackpropInput(
            input_sizes=image, filter=filters, out_backprop=dy, **kinds
        )
        df = tf.raw_ops.Conv2DBackpropFilter(
            input=x, filter_sizes=filter_sizes, out_backprop=dy, **kinds
        )
        return dx * 3.0, df * 3.0

    return body


def test_a_region_has_the_shapes_of_what_it_is_given() -> None:
    filters = tf.Variable(tf.ones([3, 3, 2, 2]))
    function, found = regions(convolved(filters), IMAGES, IMAGES)
    (region,) = found.values()
    assert ops(region)["Shape"] == 2
    assert not ops(function)["ShapeN"] + ops(region)["ShapeN"]
    assert not any(x.type == tf.int32.as_datatype_enum for x in region.signature.input_arg)


def test_who_read_a_shape_in_a_loop_reads_its_own() -> None:
    """As in the gradient of a concatenation: nodes outside of regions read what ShapeN gave."""

    def body(x: Any) -> Any:
        def trip(i: Any, x: Any) -> Any:
            one, other = tf.shape_n([tf.exp(x) * 2.0, x])
            sizes = tf.math.invert_permutation(tf.range(one[0])) + other[0]
            return i + 1, tf.tanh(x) * 2.0 + tf.cast(sizes[:1], tf.float32)

        return tf.while_loop(lambda i, _: i < 3, trip, [0, x])[1]

    x = tf.ones([4, 4])
    found, count = with_regions(body, x)
    assert count
    assert_close(found, without(body, x))


def test_the_gradient_of_a_concatenation_in_a_loop() -> None:
    def body(x: Any) -> Any:
        def trip(i: Any, x: Any) -> Any:
            both = tf.concat([tf.tanh(x), tf.math.lgamma(tf.abs(x) + 1.0)], -1)
            return i + 1, tf.reshape(tf.reduce_mean(tf.reshape(both, [4, 4, 2]), -1), [4, 4])

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.while_loop(lambda i, _: i < 3, trip, [0, x])[1] ** 2)
        return y, tape.gradient(y, x)

    x = tf.random.stateless_normal([4, 4], [1, 2])
    before = k.stats()["invalid_graphs"]
    found, count = with_regions(body, x)
    assert count
    assert k.stats()["invalid_graphs"] == before
    assert_close(found, without(body, x))


@pytest.mark.slow
def test_adapters_of_frozen_convolutions_train() -> None:
    """Low-rank adapters beside a convolution and a dense layer that stay as they are."""
    x = np.random.default_rng(0).standard_normal((8, 8, 8, 3)).astype(np.float32)
    y = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)

    def losses(on: bool) -> list[float]:
        keras.utils.set_random_seed(1)
        layers = keras.layers
        given = keras.Input((8, 8, 3))
        frozen = layers.Conv2D(6, 3, padding="same", trainable=False)(given)
        low = layers.Conv2D(6, 1, use_bias=False)(layers.Conv2D(2, 3, padding="same")(given))
        images = layers.BatchNormalization()(layers.Conv2D(5, 3)(frozen + 0.5 * low))
        pooled = layers.GlobalAveragePooling2D()(keras.ops.relu(images))
        head = layers.Dense(4)
        model = keras.Model(given, head(pooled))
        head.enable_lora(2)
        model.compile("adam", "mse", jit_compile=False)
        with options.options(regions=on):
            fitted = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        return list(fitted.history["loss"])

    before = k.stats()["invalid_graphs"]
    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-4)
    assert k.stats()["invalid_graphs"] == before


def test_a_shape_that_callers_wait_for_has_its_tensors() -> None:
    def body(x: Any) -> Any:
        tf.raw_ops.ShapeN(input=[tf.exp(x) * 2.0, x], name="shapes")
        return tf.exp(x) * 2.0

    library = library_of(traced(body, [FLOATS]))
    library.function[0].signature.control_output.append("shapes")
    library.function[0].control_ret["shapes"] = "shapes"
    assert ops(regions_of(library)[0])["ShapeN"] == 1


def test_a_shape_is_copied_to_who_has_the_tensor() -> None:
    """It is asked for in one region, and read in another one behind what is no region's."""

    def body(x: Any) -> Any:
        y = tf.exp(x) * 2.0
        shape = tf.shape(y)
        apart = tf.py_function(lambda z: z, [y], tf.float32)
        apart.set_shape([None])
        return tf.broadcast_to(tf.tanh(apart) * 2.0, shape) * y

    function, found = regions(body, tf.TensorSpec([None]))
    last = calls(function)[-1].attr["f"].func.name
    assert ops(found[last])["Shape"] == 1
    with options.options(regions=True):
        result = tf.function(body)(tf.zeros([3]))
    np.testing.assert_allclose(result, np.tanh(np.full(3, 2.0)) * 4.0, rtol=1e-6)


def test_a_view_of_a_weight_is_copied_to_who_reads_it() -> None:
    """As of a convolution of series, whose filter is that of an image of one row."""
    filters = tf.Variable(tf.ones([3, 2]))

    def body(x: Any) -> Any:
        view = tf.expand_dims(filters, 0)
        apart = tf.py_function(lambda z: z, [tf.tanh(x) * view], tf.float32)
        return tf.tanh(apart) * view * 2.0

    function, found = regions(body, tf.TensorSpec([1, 3, 2]))
    assert len(found) == 2
    assert all(ops(region)["ExpandDims"] == 1 for region in found.values())
    assert all(len(call.attr["Tout"].list.type) == 1 for call in calls(function))


def test_gradients_of_a_convolution_in_regions() -> None:
    filters = tf.Variable(tf.random.stateless_normal([3, 3, 2, 2], [1, 2]))
    x, dy = (tf.random.stateless_normal([4, 6, 6, 2], [3, n]) for n in range(2))
    wanted = convolved(filters)(x, dy)
    with options.options(regions=True):
        found = tf.function(convolved(filters), input_signature=[IMAGES] * 2)(x, dy)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
