"""The structure of parts of graphs: equal layers are compared with an op once."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

import composite
from composite.recognition.reading import Constants
from composite.recognition.view import View
from tests.composite.recognition import recognized_ops as ops

ROWS = tf.TensorSpec([3, 8], name="x")


def structure(function: Any, *specs: tf.TensorSpec) -> bytes:
    graph = tf.function(function, autograph=False).get_concrete_function(*specs).graph
    return View(Constants(graph), {}).structure(graph.outputs[0], graph.inputs)


def test_what_is_of_one_structure() -> None:
    def plain(x: Any, y: Any) -> Any:
        return tf.sqrt(x * 2.0 - y) / tf.cast(tf.shape(x)[0], tf.float32)

    base = structure(plain, ROWS, ROWS)
    assert base == structure(lambda a, b: plain(tf.identity(a), b), ROWS, ROWS)
    others = [
        structure(plain, tf.TensorSpec([4, 8]), tf.TensorSpec([4, 8])),
        structure(plain, ROWS, tf.TensorSpec([8])),
        structure(lambda x, y: plain(y, x), ROWS, ROWS),
        structure(lambda x, y: tf.sqrt(x * 3.0 - y) / 3.0, ROWS, ROWS),
        structure(lambda x, _: plain(x, x), ROWS, ROWS),
    ]
    assert len({base, *others}) == 1 + len(others)


def test_equal_layers_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from composite.recognition import search, values

    counts = {"compared": 0, "values": 0}
    outcome, deviation = search._Match.outcome, values.deviation

    def compared(self: Any) -> Any:
        counts["compared"] += 1
        return outcome(self)

    def valued(*args: Any) -> float:
        counts["values"] += 1
        return deviation(*args)

    monkeypatch.setattr(search._Match, "outcome", compared)
    monkeypatch.setattr(values, "deviation", valued)

    def layers(count: int) -> composite.Edited:
        def stack(x: Any) -> Any:
            for k in range(count):
                x = x * tf.tanh(tf.nn.softplus(x))  # the op
                x = tf.identity(x * tf.tanh(tf.nn.softplus(2.0 * x)), name=f"near{k}")
            return x

        return composite.recognize(tf.function(stack).get_concrete_function(ROWS), [ops.mish])

    few = layers(1)
    once = dict(counts)
    many = layers(4)
    added = {name: counts[name] - once[name] for name in counts}
    assert (len(few.report.recognized), len(many.report.recognized)) == (1, 4)
    assert added["values"] == once["values"] == 1  # the sizes are known
    assert added["compared"] <= 3 * once["compared"]
    near = many.report.near_misses
    assert len(near) == 4
    assert len({one.node for one in near}) == 4
