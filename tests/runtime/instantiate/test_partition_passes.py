"""Ops that only oneDNN's kernels do on a CPU: expansions do them, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.conftest import RunPython, no_compiling

nn = tf.nn


def normal(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


def by_channels(x: Any, w: Any) -> Any:
    return nn.relu(nn.conv2d(nn.relu(x), w, 1, "SAME", data_format="NCHW"))


def pooled(x: Any) -> Any:
    return nn.relu(nn.max_pool2d(nn.relu(x), 2, 2, "SAME", data_format="NCHW"))


def dilated(x: Any, w: Any) -> Any:
    return nn.relu(nn.conv2d(nn.relu(x), w, 1, "SAME", dilations=2))


def grouped(x: Any, w: Any) -> Any:
    return nn.relu(nn.conv2d(nn.relu(x), w, 1, "SAME"))


def volumes(x: Any, w: Any) -> Any:
    return nn.relu(nn.conv3d(nn.relu(x), w, [1] * 5, "SAME", dilations=[1, 2, 2, 2, 1]))


def of_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(*args: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = f(*args)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, args)

    return gradient


CASES = [
    (by_channels, (normal(2, 4, 6, 6), normal(3, 3, 4, 5))),
    (of_gradient(by_channels), (normal(2, 4, 6, 6), normal(3, 3, 4, 5))),
    (pooled, (normal(2, 4, 6, 6),)),
    (of_gradient(pooled), (normal(2, 4, 6, 6),)),
    (of_gradient(dilated), (normal(2, 6, 6, 4), normal(3, 3, 4, 5))),
    (of_gradient(grouped), (normal(2, 6, 6, 4), normal(3, 3, 2, 6))),
    (volumes, (normal(1, 5, 5, 5, 4), normal(2, 2, 2, 4, 5))),
]


@Composite("OfDilations", inputs=["x: float", "w: float"], outputs=["y: float"])
def of_dilations(x: Any, w: Any) -> Any:
    return tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1])


def assert_equal(found: Any, wanted: Any) -> None:
    for ours, theirs in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def compare_regions() -> None:
    for f, args in CASES:
        wanted = tf.function(f)(*args)
        with no_compiling(), composite.options(regions=True):
            before = composite.stats()["regions"]
            again = tf.function(f)
            for _ in range(2):
                assert_equal(again(*args), wanted)
            assert composite.stats()["regions"] > before, f


def compare_a_gradient() -> None:
    args = normal(2, 6, 6, 4), normal(3, 3, 4, 5)
    wanted = of_gradient(of_dilations.python_function)(*args)
    with no_compiling():
        assert_equal(of_gradient(of_dilations)(*args), wanted)
        assert_equal(tf.function(of_gradient(of_dilations))(*args), wanted)


def expect_an_error() -> None:
    args = normal(2, 6, 6, 4), normal(3, 3, 3, 5)
    with no_compiling():
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="depth"):
                of_dilations(*args)
        assert of_dilations(args[0], normal(3, 3, 4, 5)).shape == (2, 6, 6, 5)


SCRIPT = """
import tensorflow as tf
from tests.runtime.instantiate import test_partition_passes as cases
probe = cases.normal(2, 6, 6, 4), cases.normal(3, 3, 4, 5)
try:
    cases.of_gradient(cases.dilated)(*probe)
except tf.errors.OpError:
    print("without oneDNN")
else:
    cases.{what}()
    print("compared")
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["compare_regions", "compare_a_gradient", "expect_an_error"])
def test_expansions_do_what_graphs_do(run_python: RunPython, what: str) -> None:
    done = run_python(SCRIPT.format(what=what), env={"TF_ENABLE_ONEDNN_OPTS": "1"})
    said = done.stdout.splitlines()[-1]
    if said == "without oneDNN":
        pytest.skip("TensorFlow has no oneDNN here")
    assert said == "compared"
