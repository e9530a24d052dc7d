"""Models as ONNX: composites are functions of it, and the numbers are the model's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tensorflow as tf
import tf2onnx
from onnx.reference import ReferenceEvaluator

import composite
from composite.saving import onnx_functions
from tests.composite.saving import saved_ops

X = np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3)
SPEC = tf.TensorSpec([4, 3], name="x")
W = [[0.5, 0.1, 0.0], [0.0, -0.5, 1.0], [2.0, 0.0, 0.5]]


class Model(tf.Module):
    """Calls with equal and other attributes, with several outputs, within another, in a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(np.array(W, np.float32))

    @tf.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        x = saved_ops.saved_dense(x, self.w)
        scaled, parts = saved_ops.saved_split(x, [1, 3], n=2)
        x = saved_ops.saved_scale(x, by=3.0) + saved_ops.saved_scale(x) + scaled
        x = tf.cond(x[0, 0] > 0.0, lambda: x, lambda: saved_ops.saved_scale(x, by=0.5))
        return {"y": x, "last": parts[1]}


def run(model: Any) -> dict[str, Any]:
    names = [one.name for one in model.graph.output]
    values = ReferenceEvaluator(model).run(None, {"x": X})
    return dict(zip(names, values, strict=True))


def calls(model: Any) -> list[tuple[str, dict[str, Any]]]:
    return [
        (node.op_type, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute})
        for node in onnx_functions._nodes(model.graph)
        if node.domain == "composite"
    ]


def test_composites_are_functions(tmp_path: Path) -> None:
    model = Model()
    made = composite.to_onnx(model.__call__)
    names = [function.name for function in made.functions]
    scales = {name: attrs["by"] for name, attrs in calls(made) if "by" in attrs}
    assert sorted(scales) == ["SavedScale", "SavedScale_2", "SavedScale_3"]
    assert sorted(scales.values()) == [0.5, 2.0, 3.0]
    assert sorted(name for name, _ in calls(made)) == sorted(names)
    assert set(names) == {"SavedDense", "SavedSplit", *scales}
    found, expected = run(made), model(tf.constant(X))
    assert set(found) == {"y", "last"}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=5e-7)
    composite.save(model, tmp_path / "nodes")
    assert calls(composite.to_onnx(tmp_path / "nodes")) == calls(made)


def test_a_portable_model_is_converted_by_tf2onnx_alone(tmp_path: Path) -> None:
    composite.save(Model(), tmp_path / "portable", "portable")
    loaded = tf.saved_model.load(str(tmp_path / "portable"))
    served = loaded.signatures["serving_default"]
    frozen = tf2onnx.tf_loader.from_function(
        served, [x.name for x in served.inputs if x.dtype != tf.resource],
        [y.name for y in served.outputs],
    )  # fmt: skip
    made, _ = tf2onnx.convert.from_graph_def(
        frozen, input_names=["x:0"], output_names=[y.name for y in served.outputs],
        tensors_to_rename={"x:0": "x"},
    )  # fmt: skip
    assert {node.domain for node in made.graph.node} == {""}
    assert not made.functions
    for found, name in zip(run(made).values(), sorted(served.structured_outputs), strict=True):
        np.testing.assert_allclose(found, Model()(tf.constant(X))[name], rtol=1e-6, atol=5e-7)


def test_loops_that_fill_lists_are_converted() -> None:
    @tf.function(input_signature=[SPEC])
    def running(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 4)
        total = tf.zeros([3])
        for k in tf.range(4):
            total = saved_ops.saved_scale(total, by=0.5) + x[k]
            rows = rows.write(k, total)
        return {"y": rows.stack()}

    made = composite.to_onnx(running)
    assert not made.functions  # a composite in such a loop is converted as TensorFlow's ops
    np.testing.assert_allclose(run(made)["y"], running(tf.constant(X))["y"], rtol=1e-6, atol=5e-7)


def test_what_cannot_be_converted_is_said(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="takes a concrete function, a tf.function with an input"):
        composite.to_onnx(tf.function(lambda x: x))

    @tf.function(input_signature=[SPEC])
    def lgamma(x: Any) -> Any:
        return tf.math.lgamma(saved_ops.saved_scale(x))

    with pytest.raises(ValueError, match="tf2onnx does not convert all of the model: .*Lgamma"):
        composite.to_onnx(lgamma)
