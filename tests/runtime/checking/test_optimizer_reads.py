"""Reductions of functions read the output of a region that they are given, whichever that is.

TensorFlow's optimizer reads the first output of a node that gives several to such functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.regions.test_form_regions import assert_close, with_regions, without

LINE = tf.constant([[0.3, -0.6, 0.1, 0.8, -0.2]])


@pytest.fixture(autouse=True, scope="module")
def _nodes_of_regions_stay(_regions_are_formed: None) -> Iterator[None]:
    """As where there is a compiler, which lowers neither lgamma nor acos."""
    ops = ["Const", "Tanh", "Mul", "AddV2", "Sub", "StridedSlice"]
    k.request("composite_set_kernel_ops", k.node("", "", ops=ops))
    yield
    k.request("composite_set_kernel_ops", k.node("", "", ops=[]))


READERS: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda y: tf.argmax(tf.acos(y), 1),
    "argmin": lambda y: tf.argmin(tf.acos(y), 1),
    "max": lambda y: tf.reduce_max(tf.asin(y), 1),
    "min": lambda y: tf.reduce_min(tf.acos(y), 1),
    "pool": lambda y: tf.nn.max_pool2d(tf.asin(y[:, :, tf.newaxis, tf.newaxis]), 2, 1, "SAME"),
    "identities": lambda y: tf.argmax(tf.identity(tf.acos(tf.identity(y))), 1),
    "both": lambda y: (tf.argmax(tf.acos(y), 1), tf.reduce_max(tf.asin(y), 1)),
    "itself too": lambda y: (tf.argmax(tf.acos(y), 1), y),
}


@pytest.mark.parametrize("name", READERS)
def test_of_another_output(name: str) -> None:
    reader = READERS[name]

    def several(x: Any) -> Any:
        y = tf.tanh(x) * 0.5
        return [tf.math.lgamma(y[:, :2] + 2.0), reader(y * y - 0.1), reader(y + 0.2)]

    results, count = with_regions(several, LINE)
    assert count >= 1
    assert_close(results, without(several, LINE))
