"""Calls of functions of one op, as Keras convolves in groups: loops of one trip to a region."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.binding import settings as options
from tests.runtime.regions.scans import numbers
from tests.runtime.regions.test_form_regions import assert_close, with_regions, without
from tests.runtime.regions.test_partition import calls, ops, regions

IMAGES = tf.TensorSpec([2, 6, 6, 8])


def compiled(function: Callable[..., Any]) -> Any:
    return tf.function(function, jit_compile=True, autograph=False)


def layer(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What surrounds a call: floats enough for a region."""
    called = compiled(function)
    return lambda x: tf.nn.relu(called(tf.tanh(x)) + 1.0) * 2.0


def inside(body: Callable[[Any], Any]) -> int:
    """How many calls of a body are in its regions."""
    _, found = regions(body, IMAGES)
    return sum(ops(one)["PartitionedCall"] for one in found.values())


def test_a_convolution_in_groups_is_a_node_of_the_region() -> None:
    filters = tf.Variable(numbers(3, 3, 2, 8))
    body = layer(lambda x: tf.nn.conv2d(x, filters, 1, "SAME"))
    rewritten, found = regions(body, IMAGES)
    (region,) = found.values()
    (call,) = calls(rewritten)
    assert ops(region)["PartitionedCall"] == 1
    (read,) = (node for node in rewritten.node_def if node.op == "ReadVariableOp")
    assert f"{read.name}:value:0" in call.input
    (node,) = (node for node in region.node_def if node.op == "PartitionedCall")
    assert set(node.attr) == {"f", "Tin", "Tout", "_XlaMustCompile"}
    x = numbers(2, 6, 6, 8)
    results, count = with_regions(body, x)
    assert count == 1
    plain = tf.nn.relu(tf.nn.conv2d(tf.tanh(x), filters, 1, "SAME") + 1.0) * 2.0
    assert_close(results, [plain])


def test_a_call_reads_what_was_written_before_it() -> None:
    filters = tf.Variable(numbers(1, 1, 2, 8))
    convolve = layer(lambda x: tf.nn.conv2d(x, filters, 1, "SAME"))

    def body(x: Any) -> Any:
        first = convolve(x)
        filters.assign(filters * 3.0)
        second = convolve(x)
        filters.assign(filters / 3.0)
        return first, second

    x = numbers(2, 6, 6, 8)
    assert_close(with_regions(body, x)[0], without(body, x))


def test_equal_calls_are_equal_regions() -> None:
    names: list[str] = []
    for rate in (1, 1, 2):
        pool = functools.partial(tf.nn.max_pool2d, ksize=rate, strides=rate, padding="VALID")
        names += regions(layer(pool), IMAGES)[1]
    assert names[0] == names[1] != names[2]


def convolved(**choices: Any) -> Any:
    return compiled(lambda x, filters: tf.nn.convolution(x, filters, 1, "SAME", **choices))


ONLY_BY_XLA = {
    "3d in groups": (convolved(), (2, 4, 4, 4, 4), (2, 2, 2, 2, 6)),
    "2d in groups": (convolved(), (2, 6, 6, 4), (3, 3, 2, 6)),
    "2d in groups with dilations": (convolved(dilations=2), (2, 8, 8, 4), (3, 3, 2, 6)),
    "channels first": (convolved(data_format="NCHW"), (2, 4, 6, 6), (3, 3, 4, 6)),
    "3d channels first": (convolved(data_format="NCDHW"), (2, 4, 4, 4, 4), (2, 2, 2, 4, 6)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ONLY_BY_XLA.values(), ids=ONLY_BY_XLA.keys())
@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
def test_what_only_xla_has_an_op_for_runs(case: Any, gradient: bool) -> None:
    """XLA compiles it inside of the region, too."""
    convolve, of_images, of_filters = case

    def body(x: Any, filters: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(filters)
            y = tf.nn.relu(convolve(tf.tanh(x) * 1.5, filters) + 1.0) * 2.0
        return tape.gradient(y, filters) if gradient else y

    x, filters = numbers(*of_images), numbers(*of_filters)
    results, count = with_regions(body, x, filters)
    assert count > 0
    for found, wanted in zip(results, without(body, x, filters), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_keras_convolves_in_groups() -> None:
    keras = tf.keras

    def weights(regions: bool) -> list[Any]:
        keras.utils.set_random_seed(3)
        model = keras.Sequential(
            [
                keras.Input((4, 4, 4, 4)),
                keras.layers.Conv3D(6, 2, groups=2, activation="tanh"),
                keras.layers.Flatten(),
                keras.layers.Dense(2),
            ]
        )
        model.compile("sgd", "mse", jit_compile=False)
        x, y = np.ones((4, 4, 4, 4, 4), "float32"), np.ones((4, 2), "float32")
        with options.options(regions=regions):
            model.fit(x, y, epochs=2, verbose=0)
            return [*model.get_weights(), model.predict(x, verbose=0)]

    for found, wanted in zip(weights(True), weights(False), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


STATE = tf.Variable(1.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.exp(tf.nn.softmax(x)),
        tf.math.lgamma,
        lambda x: x * tf.random.uniform([8]),
        lambda x: x * STATE.assign_add(1.0),
        lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * 2.0), (0, x))[1],
    ],
    ids=["several ops", "uncovered", "random", "write", "loop"],
)
def test_calls_that_stay_outside(function: Callable[[Any], Any]) -> None:
    body = layer(function)
    assert inside(body) == 0
    assert len(with_regions(body, numbers(2, 6, 6, 8))[0]) == 1
