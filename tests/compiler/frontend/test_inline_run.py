"""Helpers and library functions in an op that runs: values, gradients, places of errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite

TEXT = """
import tensorflow as tf


def _activation(x, act, alpha=0.1):
    if act == "LEAKY":
        return tf.nn.leaky_relu(x, alpha)
    if act == "GELU":
        return tf.nn.gelu(x)
    if act != "":
        raise ValueError(f"no activation {act}")
    return x


def _moments(x, axis):
    mean = tf.reduce_mean(x, axis, keepdims=True)
    return mean, tf.reduce_mean(tf.square(x - mean), axis, keepdims=True)


def body(x, w, b, act):
    axis = -1

    def normalized(y):
        mean, variance = _moments(y, axis)
        return (y - mean) * tf.math.rsqrt(variance + 1e-3)

    hidden = normalized(tf.matmul(x, w, transpose_b=True) + b)
    return _activation(hidden, act)
"""


@pytest.fixture(scope="module")
def op(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = Path(tmp_path_factory.mktemp("helpers") / "layers.py")
    path.write_text(TEXT, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "layers"}
    exec(compile(TEXT, str(path), "exec"), namespace)
    decorate = composite.Composite(
        "InlineRun",
        inputs=["x: T", "w: T", "b: T"],
        attrs=['act: string = ""'],
        derived_attrs=["T: {float, double}"],
        outputs=["o: T"],
    )
    return decorate(namespace["body"])


def inputs(dtype: str = "float32") -> list[Any]:
    random = np.random.default_rng(0)
    return [tf.constant(random.standard_normal(shape), dtype) for shape in ([5, 3], [4, 3], [4])]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("act", ["", "LEAKY", "GELU"])
def test_values_and_gradients(op: Any, act: str, dtype: str) -> None:
    given = inputs(dtype)
    results = []
    with composite.options(backend="tf"):
        for call in (lambda *args: op(*args, act=act), lambda *a: op.python_function(*a, act)):
            with tf.GradientTape() as tape:
                tape.watch(given)
                result = call(*given)
            results.append([result, *tape.gradient(result, given)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_an_error_names_the_helper_s_line_and_the_call_s(op: Any) -> None:
    with (
        composite.options(backend="tf"),
        pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"layers\.py:11:9, called at layers\.py:28:12: ValueError: no activation SELU",
        ),
    ):
        op(*inputs(), act="SELU")


def test_an_error_of_the_library_names_the_author_s_line(op: Any) -> None:
    x, w, b = inputs()
    with pytest.raises(ValueError, match=r"^layers\.py:27:25: .*Dimensions must be equal"):
        tf.function(op)(x, tf.transpose(w), b)
