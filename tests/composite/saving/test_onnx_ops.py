"""Ops that tf2onnx alone does not convert give TensorFlow's numbers in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from onnx.reference import ReferenceEvaluator

import composite

X = np.linspace(-4.0, 4.0, 17, dtype=np.float32)


def converted(body: Callable[[Any], Any], x: Any) -> tuple[list[str], Any]:
    """The operators of a function's model, and what it gives."""
    spec = tf.TensorSpec(x.shape, x.dtype, name="x")
    model = composite.to_onnx(tf.function(body, input_signature=[spec], autograph=False))
    (y,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(y, body(tf.constant(x)), rtol=1e-5, atol=1e-6)
    return [node.op_type for node in model.graph.node], y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_exact_gelu_is_what_runtimes_look_for(dtype: str) -> None:
    operators, y = converted(lambda x: tf.nn.gelu(x, approximate=False), X.astype(dtype))
    assert {"Div", "Erf", "Add"} < set(operators) and "Neg" not in operators
    assert y.dtype == dtype


@pytest.mark.parametrize(
    "body",
    [
        tf.math.erfc,
        lambda x: tf.math.erfc(-x),
        lambda x: tf.math.erfc(x * 0.5),
        lambda x: tf.math.erfc(-x * 0.0),
        lambda x: tf.math.erfc(-x * tf.constant(X)),
        lambda x: tf.math.erfc(tf.constant([0.5]) * -x),
    ],
)
def test_erfc_of_anything_else(body: Callable[[Any], Any]) -> None:
    operators, _ = converted(body, X)
    assert {"Erf", "Sub"} <= set(operators) and "Div" not in operators
