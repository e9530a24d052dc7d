"""`composite.recognize` of models, graphs and folders; what is no op, and what must stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner

import composite
from composite.cli.main import main
from tests.composite.recognition import recognized_ops as ops

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)
ROWS = tf.TensorSpec([None, 8], name="x")


def test_a_keras_model() -> None:
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(0)
    inputs = tf.keras.Input((None, 16))
    hidden = layers.LayerNormalization(epsilon=1e-4)(inputs)
    hidden = layers.MultiHeadAttention(2, 8)(hidden, hidden) + inputs
    wide = layers.Dense(4)(layers.LayerNormalization(epsilon=1e-3, center=False)(hidden))
    model = tf.keras.Model(inputs, layers.Dense(16)(layers.Activation("mish")(wide)) + hidden)
    wanted = [ops.layer_norm, ops.attention, ops.mish]
    x = np.random.default_rng(0).standard_normal((2, 5, 16)).astype(np.float32)
    edited = composite.recognize(model, wanted, x)
    norms = [one for one in edited.report.recognized if one.op == "FoundLayerNorm"]
    assert {tuple(one.constants.items()): one.attrs["epsilon"] for one in norms} == {
        (): pytest.approx(1e-4),
        (("beta", 0.0),): pytest.approx(1e-3),
    }
    found = sorted(one.op for one in edited.report.recognized)
    assert found == ["FoundAttention", "FoundLayerNorm", "FoundLayerNorm", "FoundMish"]
    assert edited.report.outputs.skipped == ""
    np.testing.assert_allclose(edited(x), model(x), rtol=1e-4, atol=1e-5)
    slopes = []
    for called in (edited, model):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(called(x) ** 2)
        slopes.append(tape.gradient(loss, model.trainable_variables))
    for found, wanted in zip(*slopes, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_gradients() -> None:
    weight = tf.Variable(np.eye(8, dtype=np.float32) + 0.1)

    @tf.function(input_signature=[ROWS])
    def body(x: Any) -> Any:
        hidden = tf.matmul(x, weight)
        return hidden * tf.tanh(tf.math.log1p(tf.exp(hidden)))

    edited = composite.recognize(body, [ops.mish], X)
    assert len(edited.report.recognized) == 1
    slopes = []
    for function in (edited, body):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(function(X) ** 2)
        slopes.append(tape.gradient(loss, weight))
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-3, atol=1e-4)


def test_a_folder_with_a_loop(tmp_path: Path) -> None:
    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gamma = tf.Variable(np.linspace(0.5, 1.5, 8, dtype=np.float32))

        @tf.function(input_signature=[ROWS])
        def __call__(self, x: Any) -> Any:
            for _ in tf.range(2):
                x = self.gamma * (x / tf.sqrt(tf.reduce_mean(x * x, 1, keepdims=True) + 1e-3))
            return x

    model = Model()
    tf.saved_model.save(model, str(tmp_path / "model"))
    report = composite.recognize(tmp_path / "model", [ops.rms_norm], out=tmp_path / "out")
    (found,) = report.recognized
    assert "while_body" in found.function
    assert found.attrs == {"epsilon": pytest.approx(1e-3)}
    loaded = composite.load_model(tmp_path / "out")
    np.testing.assert_allclose(loaded(X), model(X), rtol=1e-5)
    arguments = ["recognize", tmp_path / "model", "-o", tmp_path / "other", "--op", "FoundRmsNorm"]
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    assert "recognized 1 FoundRmsNorm" in " ".join(done.output.split())
    done = CliRunner().invoke(main, [*map(str, arguments[:-1]), "Nothing"])
    assert "no library or file has an op Nothing" in done.output
    with pytest.raises(TypeError, match="composite.recognize in a folder needs out="):
        composite.recognize(tmp_path / "model", [ops.rms_norm])


def test_constants_and_a_control_edge_of_a_graph() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 8], name="x")
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        gamma, beta = np.arange(1, 9, dtype=np.float32), np.ones(8, np.float32)
        y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        y = tf.identity(y, name="y")
        with tf.control_dependencies([variance.op]):
            tf.negative(x, name="later")
    edited = composite.recognize(graph.as_graph_def(), [ops.layer_norm])
    (found,) = edited.report.recognized
    nodes = {node.name: node for node in edited.graph_def.node}
    assert nodes[found.node].op == "FoundLayerNorm"
    assert f"^{found.node}" in nodes["later"].input
    with tf.Graph().as_default() as again, tf.compat.v1.Session(graph=again) as session:
        tf.graph_util.import_graph_def(edited.graph_def, name="")
        result = session.run("y:0", {"x:0": X})
    with tf.compat.v1.Session(graph=graph) as session:
        np.testing.assert_allclose(result, session.run("y:0", {"x:0": X}), rtol=1e-4, atol=1e-5)


def near_of(body: Any, op: Any, *specs: tf.TensorSpec) -> str:
    """Why the one place that is nearly an op is none."""
    report = composite.recognize(tf.function(body).get_concrete_function(*specs), [op]).report
    assert report.recognized == ()
    (near,) = report.near_misses
    assert f"not {op.op_name} at {near.node}" in str(report)
    return near.reason


def test_what_is_not_an_op() -> None:
    reason = near_of(lambda x: x * tf.nn.relu6(x + 3) / 5, ops.hard_swish, ROWS)
    assert reason == "the factor of x*min(max(1 + 0.333333*x, 0), 2) is 0.6, not 0.5"
    reason = near_of(lambda x: x * tf.tanh(tf.nn.softplus(2.0 * x)), ops.mish, ROWS)
    assert reason == "the exponent of exp(x) is 2, not 1"

    def moved(x: Any) -> Any:
        mean = tf.reduce_mean(tf.square(x), -1, keepdims=True)
        return (x + 0.5) * tf.math.rsqrt(mean + 1e-6)

    reason = near_of(moved, ops.rms_norm, ROWS)
    assert reason == "500*(1 + 1e+06*mean(x^2))^-0.5 is added"

    reason = near_of(lambda x: tf.math.log(x * x), ops.log_of_square, ROWS)
    assert reason == "FoundLogOfSquare gives other values there, by inf"

    def shared(x: Any) -> Any:
        inner = tf.nn.softplus(x)
        return x * tf.tanh(inner) + tf.sin(inner)

    reason = near_of(shared, ops.mish, ROWS)
    assert reason == "Softplus, an inner value of the pattern, is taken by Sin too"


def test_what_is_asked_of_it() -> None:
    body = tf.function(lambda x: x + 1.0, input_signature=[ROWS])
    report = composite.recognize(body, [ops.mish, ops.gelu]).report
    assert report.verdict == "none of 2 ops found"
    with pytest.raises(TypeError, match="looks for composite ops, 'Mish' is none"):
        composite.recognize(body, ["Mish"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="needs ops: define some"):
        composite.recognize(body, [])
    with pytest.raises(TypeError, match="inputs= are for a function"):
        composite.recognize(tf.compat.v1.GraphDef(), [ops.mish], X)
    with pytest.raises(TypeError, match=r"composite.recognize takes a GraphDef"):
        composite.recognize(3, [ops.mish])
