"""Composites as custom ops of TFLite models, run by the kernels of a built library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite.saving import saved_ops

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
W = [[0.5, 0.1, 0.0], [0.0, -0.5, 1.0], [2.0, 0.0, 0.5]]


class Model(tf.Module):
    """A product of TFLite's own between two composites, of which one has several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(np.array(W, np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def __call__(self, x: Any) -> Any:
        x = tf.matmul(saved_ops.saved_scale(x, by=0.1), self.w)
        y, slope = saved_ops.saved_polynomial(x, order=3)
        return y * x - slope


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("custom") / "model"
    composite.save(Model(), folder)
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    x = ("float32", ("n", 3))
    return composite.build(
        [saved_ops.saved_scale, saved_ops.saved_polynomial],
        tmp_path_factory.mktemp("custom") / "lib",
        name="saved_custom",
        signatures={
            "saved_scale": [{"x": x, "by": 0.1}],
            "saved_polynomial": [{"x": x, "order": 3}],
        },
    )


def run(flat: bytes, x: Any, *delegates: Any) -> Any:
    interpreter = tf.lite.Interpreter(
        model_content=flat, experimental_delegates=list(delegates) or None
    )
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_custom_ops_run_the_kernels_of_a_library(model: Path, library: Path) -> None:
    flat = composite.to_tflite(model)
    with pytest.raises(RuntimeError, match="unresolved custom op: SavedScale"):
        run(flat, X)
    expected = Model()(tf.constant(X))
    for rows in (4, 2):
        found = run(flat, X[:rows], composite.tflite_delegate(library))
        np.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-6)


def test_ops_that_are_not_named_are_those_of_tflite(model: Path, library: Path) -> None:
    given: list[Any] = []
    flat = composite.to_tflite(model, [saved_ops.saved_polynomial], given.append)
    assert given[0].allow_custom_ops
    assert b"SavedPolynomial" in flat and b"SavedScale" not in flat
    found = run(flat, X, composite.tflite_delegate(library))
    np.testing.assert_allclose(found, Model()(tf.constant(X)), rtol=1e-5, atol=1e-6)


def test_what_cannot_run_says_why(model: Path, library: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no built library"):
        composite.tflite_delegate(tmp_path)

    class Other(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2, 3])])
        def __call__(self, x: Any) -> Any:
            return saved_ops.saved_scale(x, by=0.2)

    composite.save(Other(), tmp_path / "other")
    flat = composite.to_tflite(tmp_path / "other")
    with pytest.raises(RuntimeError, match=r'no kernel .*"by": 0.2'):
        run(flat, X[:2], composite.tflite_delegate(library))
