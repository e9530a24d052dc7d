"""composite.check of ops that take variables: what they give, and what they leave in these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.checking import reproduction, variables
from composite.checking.sample import Sample
from composite.ops.op import DecoratedOp

WAYS = ["eager", "tf.function", "unknown dims", "unknown ranks", "XLA", "deterministic"]
GRADIENTS = ["gradient", "numeric gradient", "second gradient"]


@Composite("CheckedRead", inputs=["v: resource", "x: float"], outputs=["y: float"])
def read(v, x):
    return tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32) * x


@Composite(
    "CheckedAdds",
    inputs=["x: T", "vs: N * resource"],
    derived_attrs=["T: {float, double}", "N: int >= 2"],
    outputs=["y: T"],
)
def adds(x, vs):
    tf.raw_ops.AssignAddVariableOp(resource=vs[0], value=x)
    total = tf.raw_ops.ReadVariableOp(resource=vs[0], dtype=x.dtype)
    tf.raw_ops.AssignVariableOp(resource=vs[1], value=total * 2)
    return total - x


@Composite("CheckedAssigns", inputs=["v: resource", "x: float"])
def assigns(v, x):
    tf.raw_ops.AssignSubVariableOp(resource=v, value=x)


@Composite(
    "CheckedScales",
    inputs=["v: resource", "x: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T", "z: T"],
)
def scales(v, x):
    h = tf.raw_ops.ReadVariableOp(resource=v, dtype=x.dtype)
    return h * x * h, tf.tanh(h) + x


@Composite(
    "CheckedSteps",
    inputs=["v: resource", "x: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def steps(v, x):
    h = tf.raw_ops.ReadVariableOp(resource=v, dtype=x.dtype)
    tf.raw_ops.AssignVariableOp(resource=v, value=h * 2)
    return tf.tanh(h * x) * h


@pytest.fixture
def given() -> dict[Any, list[Any]]:
    x = tf.constant([[1.0, -2.0, 3.0]])
    v, w = tf.Variable([[0.5, 0.25, -1.0]]), tf.Variable(tf.zeros([1, 3]))
    return {read: [v, x], adds: [x, [v, w]], assigns: [v, x]}


@pytest.mark.parametrize("op", [read, adds, assigns], ids=lambda op: op.op_name)
def test_each_way_agrees(op: Any, given: dict[Any, list[Any]], tmp_path: Path) -> None:
    before = [v.numpy() for v in variables.of(given[op])]
    report = composite.check(op, *given[op], report_dir=tmp_path)
    assert report.ok
    assert {row.way for row in report.rows if row.samples} >= {*WAYS} - {"XLA"}, report
    for variable, value in zip(variables.of(given[op]), before, strict=True):
        np.testing.assert_array_equal(variable, value)  # the check has its own


@pytest.mark.parametrize("op", [read, adds, assigns], ids=lambda op: op.op_name)
def test_calls_are_drawn(op: Any, tmp_path: Path) -> None:
    report = composite.check(op, samples=6, report_dir=tmp_path)
    assert report.ok and report.raised < report.calls, report


def test_gradients_and_batches_beside_a_variable(
    given: dict[Any, list[Any]], tmp_path: Path
) -> None:
    ways = [*GRADIENTS, "vectorized_map"]
    report = composite.check(scales, *given[read], ways=ways, samples=1, report_dir=tmp_path)
    assert {row.way for row in report.rows if row.samples} == {*ways}, report
    report = composite.check(steps, *given[read], ways=ways, samples=1, report_dir=tmp_path)
    assert all("changes a variable" in str(row.notes) for row in report.rows[:3]), report
    assert "it writes variables" in str(report.rows[3].notes)


def test_a_wrong_gradient_beside_a_variable_is_found(
    given: dict[Any, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def otherwise(v: Any, x: Any) -> Any:
        h = tf.raw_ops.ReadVariableOp(resource=v, dtype=x.dtype)
        return h * tf.stop_gradient(x) * h, tf.tanh(h) + x

    monkeypatch.setattr(DecoratedOp, "python_function", property(lambda _: otherwise))
    for way in GRADIENTS[::2]:
        report = composite.check(
            scales, *given[read], ways=[way], report_dir=tmp_path, raise_on_failure=False
        )
        assert not report.ok, way


def _otherwise(v: Any, x: Any) -> None:
    tf.raw_ops.AssignAddVariableOp(resource=v, value=x)


@pytest.mark.parametrize("way", WAYS[:-1])
def test_another_content_is_found(
    way: str, given: dict[Any, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DecoratedOp, "python_function", property(lambda _: _otherwise))
    report = composite.check(
        assigns, *given[assigns], ways=[way], report_dir=tmp_path, raise_on_failure=False
    )
    assert not report.ok
    assert "after the call, the variable 'v' is off" in str(report.difference)
    (inputs,) = tmp_path.glob("*/inputs.npz")
    v, x = given[assigns]
    found = reproduction.read_inputs(inputs)  # an array stands for a variable
    np.testing.assert_array_equal(found[0], v)
    np.testing.assert_array_equal(found[1], x)


def test_an_array_stands_for_a_variable_and_a_handle_does_not(tmp_path: Path) -> None:
    x = np.array([1, 2], np.float32)
    assert composite.check(read, x, x, ways=["eager"], samples=1, report_dir=tmp_path).ok
    with pytest.raises(TypeError, match="the variable for 'v', or an array of what it holds"):
        composite.check(read, tf.Variable(x).handle, x)


def test_a_sample_makes_new_variables() -> None:
    array = np.array([1, 2], np.float32)
    sample = Sample((array, [array, array]), {}, "as given", frozenset([1]))
    first, second = sample.tensors(), sample.tensors()
    assert [len(variables.of(one)) for one in (first, second)] == [2, 2]
    variables.of(first)[0].assign_add(array)
    assert variables.of(second)[0].numpy().tolist() == [1, 2]
    assert sample.describe() == "float32[2], [variable float32[2], variable float32[2]] (as given)"
    assert sample.replaced("twice", lambda x: x * 2).variables == frozenset([1])


def test_a_keras_variable_is_taken() -> None:
    import keras

    variable = keras.Variable([1.0, 2.0])
    np.testing.assert_array_equal(variables.contents("v", variable), [1, 2])
