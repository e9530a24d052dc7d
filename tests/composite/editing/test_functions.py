"""`composite.replace` in functions of the process: what is found, and what stands there then."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Match
from tests.composite.editing.edited_ops import scaled_tanh

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
FLOATS = tf.TensorSpec([None, 4], tf.float32)


class Layers(tf.Module):
    """Ops in the function itself, in what it calls, and in a loop and a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(np.eye(4, dtype=np.float32) + 0.1)

    @tf.function
    def dense(self, x: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, self.weight) + 1.0)

    @tf.function(input_signature=[FLOATS])
    def __call__(self, x: Any) -> dict[str, Any]:
        y = self.dense(x)
        for _ in tf.range(2):
            if tf.reduce_sum(y) > 3.0:
                y = self.dense(tf.nn.relu(y - 0.5))
        return {"y": tf.nn.relu(y), "none": None}


def ops_of(edited: composite.Edited) -> list[str]:
    return [n.op for f in edited.graph_def.library.function for n in f.node_def]


def test_an_op_in_loops_branches_and_calls() -> None:
    layers = Layers()
    edited = composite.replace(layers.__call__, "Relu", lambda x: tf.maximum(x, 0.0))
    assert len(edited.report.replaced) == 3  # one function is called from two places
    assert "Relu" not in ops_of(edited)
    x = tf.constant(X)
    np.testing.assert_allclose(edited(x)["y"], layers(x)["y"], rtol=1e-6)
    assert edited(x)["none"] is None
    slopes = []
    for function in (layers, edited):
        with tf.GradientTape() as tape:
            square = function(x)["y"] ** 2
        slopes.append(tape.gradient(square, layers.weight))
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-5)
    layers.weight.assign_add(tf.ones([4, 4]))  # it is the same variable
    np.testing.assert_allclose(edited(x)["y"], layers(x)["y"], rtol=1e-6)
    assert "Relu" in str(layers.__call__.get_concrete_function().graph.as_graph_def())
    text = str(edited.report)
    assert "Relu replaced by <lambda> in 3 places" in text


def test_second_derivatives_of_a_loop_in_a_loop() -> None:
    weight = tf.Variable(1.5)

    @tf.function(input_signature=[tf.TensorSpec([])])
    def body(x: Any) -> Any:
        for _ in tf.range(2):
            for _ in tf.range(2):
                x = tf.nn.relu(x * weight)
        return x

    edited = composite.replace(body, "Relu", tf.identity)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = edited(tf.constant(2.0))
        slope = tape.gradient(y, weight)
    assert float(slope) == 2 * 4 * 1.5**3
    assert float(outer.gradient(slope, weight)) == 2 * 12 * 1.5**2


def test_a_pattern_of_two_ops_with_a_variable() -> None:
    layers = Layers()
    specs = [tf.TensorSpec([None, 4]), tf.TensorSpec([4, 4]), tf.TensorSpec(None)]

    def pattern(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(b + tf.matmul(x, w))

    def replacement(x: Any, w: Any, b: Any) -> Any:
        assert w.shape == [4, 4]
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), tf.fill([4], b)))

    edited = composite.replace(layers.__call__, Match(pattern=pattern, inputs=specs), replacement)
    assert [one.ops for one in edited.report.replaced] == [("Relu", "AddV2", "MatMul")]
    assert "BiasAdd" in ops_of(edited)
    np.testing.assert_allclose(edited(X)["y"], layers(X)["y"], rtol=1e-6)


def test_a_composite_and_a_literal() -> None:
    @tf.function(input_signature=[FLOATS, FLOATS])
    def body(x: Any, y: Any) -> Any:
        with tf.name_scope("left"):
            one = tf.tanh(x) * 0.5
        with tf.name_scope("right"):
            two = 0.5 * tf.identity(tf.tanh(y))
        with tf.name_scope("near"):
            three = tf.tanh(y) * 0.25
        return one + two + three

    def pattern(x: Any) -> Any:
        return tf.tanh(x) * 0.5

    edited = composite.replace(body, pattern, lambda x: scaled_tanh(x, scale=0.5))
    assert {one.nodes[0] for one in edited.report.replaced} == {"left/mul", "right/mul"}
    assert ops_of(edited).count("EditedTanh") == 2
    (near,) = edited.report.near_misses
    assert near.node == "near/mul"
    assert re.fullmatch(r"constant near/mul/y is 0.25, not 0.5", near.reason)
    assert "not near/mul of __inference_body" in str(edited.report)
    np.testing.assert_allclose(edited(X, X + 1), body(X, X + 1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float64, tf.bfloat16])
def test_a_pattern_is_one_of_any_dtype(dtype: tf.DType) -> None:
    body = tf.function(lambda x: tf.matmul(x, x) + x)
    concrete = body.get_concrete_function(tf.TensorSpec([4, 4], dtype))
    edited = composite.replace(concrete, lambda x, y, z: tf.matmul(x, y) + z, lambda x, y, z: z)
    assert len(edited.report.replaced) == 1
    x = tf.cast(tf.ones([4, 4]), dtype)
    assert np.array_equal(edited(x), x)


def test_attributes_are_handed_on() -> None:
    @tf.function(input_signature=[FLOATS])
    def body(x: Any) -> Any:
        return tf.nn.leaky_relu(x, alpha=0.25)

    edited = composite.replace(body, "LeakyRelu", lambda x, alpha: tf.where(x > 0, x, x * alpha))
    np.testing.assert_allclose(edited(X), body(X))


def test_a_keras_model() -> None:
    inputs = tf.keras.Input((4,))
    hidden = tf.keras.layers.Dense(4, activation="relu", name="one")(inputs)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2, activation="relu", name="two")(hidden))
    match = Match(op="Relu", name="*one*", where=lambda op: op.inputs[0].shape[-1] == 4)
    edited = composite.replace(model, match, lambda x: tf.maximum(x, 0.0))
    assert len(edited.report.replaced) == 1
    assert [near.reason for near in edited.report.near_misses] == ["its name is not '*one*'"]
    np.testing.assert_allclose(edited(X), model(X), rtol=1e-6)


def test_state_that_a_replacement_brings() -> None:
    seen: list[float] = []

    @tf.function(input_signature=[FLOATS])
    def body(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) < 1e9, lambda: tf.nn.relu(x), lambda: x)

    def noted(x: Any) -> Any:
        tf.py_function(lambda: seen.append(1.0), [], [])
        return tf.nn.relu(x)

    edited = composite.replace(body, "Relu", noted)
    for _ in range(2):
        np.testing.assert_allclose(edited(X), body(X))
    assert len(seen) == 2


def test_what_does_not_fit() -> None:
    @tf.function(input_signature=[FLOATS])
    def body(x: Any) -> Any:
        return tf.nn.relu(x)

    with pytest.raises(
        ValueError,
        match=r"cannot replace Relu of function __inference_body_\d+: result 0 is "
        r"float32\(None, 5\), and Relu is float32\(None, 4\). Return that",
    ):
        composite.replace(body, "Relu", lambda x: tf.concat([x, x[:, :1]], 1))
    with pytest.raises(ValueError, match="it returns 2 tensors, 1 are needed"):
        composite.replace(body, "Relu", lambda x: (x, x))
    with pytest.raises(ValueError, match="where its inputs are float32"):
        composite.replace(body, "Relu", lambda x, y: x)
    variable = tf.Variable(1.0)
    with pytest.raises(ValueError, match="none of its inputs: make it an input, or a constant"):
        composite.replace(body, "Relu", lambda x: x * variable)
    with pytest.raises(ValueError, match="Rellu is no op that TensorFlow has"):
        composite.replace(body, "Rellu", lambda x: x)
    with pytest.raises(TypeError, match="without an input signature has many graphs"):
        composite.replace(tf.function(lambda x: x), "Relu", lambda x: x)
    report = composite.replace(body, "Tanh", lambda x: x).report
    assert report.verdict == "no Tanh found"
