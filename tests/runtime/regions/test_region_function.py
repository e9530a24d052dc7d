"""What a region gives: all that somebody outside of it reads, whatever the region has copies of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from composite.binding import settings as options
from tests.runtime import kernel_support as k
from tests.runtime.regions.test_form_regions import assert_close, with_regions, without
from tests.runtime.regions.test_partition import FLOATS, calls, ops, regions

NUMBERS = tf.constant(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))


def of_moments(x: Any) -> Any:
    """The mean is read by views alone: by one in the region, too, and by those outside."""
    mean = tf.reduce_mean(tf.exp(x) * 2.0, 0, keepdims=True)
    apart = tf.math.lgamma(tf.stop_gradient(mean))  # no kernel has it
    return tf.exp(x) - tf.stop_gradient(mean), tf.squeeze(mean, 0), apart


def in_a_call(body: Callable[..., Any]) -> Callable[..., Any]:
    inner = tf.function(body, autograph=False)
    return lambda *inputs: [value + 0.0 for value in inner(*inputs)]


@pytest.mark.parametrize("wrap", [lambda body: body, in_a_call])
def test_what_views_outside_read_is_a_result(wrap: Any) -> None:
    wanted = without(of_moments, NUMBERS)
    before = k.stats()["invalid_graphs"]
    found, count = with_regions(wrap(of_moments), NUMBERS)
    assert count
    assert k.stats()["invalid_graphs"] == before
    assert_close(found, wanted)


def test_each_view_outside_has_what_it_views() -> None:
    function, found = regions(of_moments)
    names = {node.name for node in function.node_def} | {"x"}
    for node in function.node_def:
        assert {i.lstrip("^").split(":")[0] for i in node.input} <= names
    assert ops(function)["StopGradient"] + ops(function)["Squeeze"] >= 1
    assert len(calls(function)) == len(found)


def test_a_shape_outside_has_its_tensor() -> None:
    """A region that has the shape as a copy gives the tensor, for the shape that stays."""

    def body(x: Any) -> Any:
        y = tf.exp(x) * 2.0
        with tf.control_dependencies([tf.py_function(lambda: None, [], [])]):
            shape = tf.shape(y)  # outside: it waits
        return tf.broadcast_to(tf.tanh(y[:1]) * 3.0, shape) + y, shape

    with options.options(regions=True):
        found = tf.function(body, autograph=False)(NUMBERS)
    assert_close(found, without(body, NUMBERS))


def test_a_mean_that_another_region_reads_by_a_view() -> None:
    def body(x: Any) -> Any:
        mean = tf.reduce_mean(tf.exp(x) * 2.0, 0, keepdims=True)
        view = tf.squeeze(mean, 0)
        apart = tf.math.lgamma(tf.exp(x) * 3.0)
        return tf.tanh(apart) * view * tf.stop_gradient(mean)

    _, found = regions(body, FLOATS)
    assert len(found) == 2
    assert_close(with_regions(body, NUMBERS)[0], without(body, NUMBERS))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_batch_norm_trains(optimizer: str) -> None:
    x = np.random.default_rng(0).standard_normal((32, 6)).astype(np.float32)
    y = np.zeros((32, 4), np.float32)

    def losses(on: bool) -> list[float]:
        keras.utils.set_random_seed(1)
        layers = [keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.Dense(4)]
        model = keras.Sequential([keras.Input((6,)), *layers])
        model.compile(optimizer, "mse", jit_compile=False)
        with options.options(regions=on):
            fitted = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
        return list(fitted.history["loss"])

    before = k.stats()["invalid_graphs"]
    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)
    assert k.stats()["invalid_graphs"] == before
