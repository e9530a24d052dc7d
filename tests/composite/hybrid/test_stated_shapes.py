"""Shapes that a model's code states reach its kernels: of a function, what it calls, a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from composite.hybrid.freezing import freeze
from composite.hybrid.graph import graph_of
from composite.hybrid.values import Dims, Values

SPEC = tf.TensorSpec([None], tf.string, name="text")
WEIGHTS = tf.random.stateless_normal([4, 4], [1, 2])


def decoded(text: Any) -> Any:
    """Rows whose rank TensorFlow does not infer."""
    rows = tf.io.parse_tensor(text[0], tf.float32)
    rows.set_shape([None, 4])
    return rows


def dims_of(concrete: Any) -> Dims | None:
    frozen = freeze(concrete, "f")
    values = Values(frozen.library, frozen.inputs, frozen.shapes)
    (of,) = graph_of(frozen.library, frozen.library).outputs
    return values.of(of).dims


def test_a_stated_shape_is_known() -> None:
    called = tf.function(decoded, input_signature=[SPEC])
    twice = tf.function(lambda x: called(x) * 2.0, input_signature=[SPEC])
    for function in (decoded, called, twice, lambda x: twice(x) + 1.0):
        assert dims_of(tf.function(function).get_concrete_function(SPEC)) == ("s1", 4)

    def bare(text: Any) -> Any:
        return tf.io.parse_tensor(text[0], tf.float32)

    assert dims_of(tf.function(bare).get_concrete_function(SPEC)) is None


@pytest.mark.slow
def test_kernels_behind_it(tmp_path: Path) -> None:
    def model(text: Any) -> Any:
        return {"y": tf.nn.softmax(tf.matmul(decoded(text), WEIGHTS) + 1.0)}

    module = tf.Module()
    module.model = tf.function(model, input_signature=[SPEC])
    tf.saved_model.save(module, str(tmp_path / "m"), {"serving_default": module.model})
    rows = tf.random.stateless_normal([5, 4], [3, 4])
    text = tf.io.serialize_tensor(rows)[None]
    for given in (model, module.model, tmp_path / "m"):
        made = hybrid.compile(given, *([text] if given is model else []))
        assert made.report is not None
        assert (made.report.kernels, made.report.calls) == (1, 1)
        np.testing.assert_allclose(made(text)["y"], model(text)["y"], rtol=1e-5)
