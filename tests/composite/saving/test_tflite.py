"""Portable models in TFLite, in floats and quantized, beside the same model of plain ops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite.saving import saved_ops

SHAPE = (4, 24)
RANDOM = np.random.default_rng(4)
W = RANDOM.normal(0, 0.3, (24, 20)).astype(np.float32)
X = RANDOM.normal(0, 1, SHAPE).astype(np.float32)
SPEC = tf.TensorSpec(SHAPE)


class Composed(tf.Module):
    @tf.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        return saved_ops.saved_scale(saved_ops.saved_dense(x, tf.constant(W)))


class Plain(tf.Module):
    @tf.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        return saved_ops.saved_scale.python_function(
            saved_ops.saved_dense.python_function(x, tf.constant(W))
        )


def examples() -> Iterator[list[Any]]:
    """What int8 ranges are taken from: X too, whose values would be clipped where it is larger."""
    yield [X]
    for seed in range(8):
        yield [np.random.default_rng(seed).normal(0, 1, SHAPE).astype(np.float32)]


def converted(folder: Path, kind: str) -> bytes:
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder))
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "int8":
        converter.representative_dataset = examples
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    flat: bytes = converter.convert()
    return flat


def run(flat: bytes) -> tuple[Any, tuple[float, int]]:
    """The output for X, its scale (0 where it is floating) and zero point."""
    interpreter = tf.lite.Interpreter(model_content=flat)
    given, output = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    interpreter.resize_tensor_input(given["index"], SHAPE)
    interpreter.allocate_tensors()
    scale, zero = given["quantization"]
    x = composite.quant.quantize(X, scale, zero).numpy() if scale else X
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(output["index"]), output["quantization"]


@pytest.mark.parametrize("kind", ["float", "dynamic range", "int8"])
def test_a_portable_model_is_what_plain_ops_are(tmp_path: Path, kind: str) -> None:
    composite.save(Composed(), tmp_path / "portable", "portable")
    tf.saved_model.save(Plain(), str(tmp_path / "plain"))
    flat, plain = (converted(tmp_path / name, kind) for name in ("portable", "plain"))
    (y, steps), (wanted, other) = run(flat), run(plain)
    assert (y.dtype, steps) == (wanted.dtype, other)
    if kind == "int8":
        assert y.dtype == np.int8 and np.abs(y.astype(int) - wanted).max() <= 1
        assert np.unique(y).size > 10
    else:
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)
        exact = Plain()(X)
        np.testing.assert_allclose(y, exact, atol=1e-5 if kind == "float" else 0.1)


def test_a_keras_model(tmp_path: Path) -> None:
    inputs = tf.keras.Input(SHAPE[1:], batch_size=SHAPE[0])
    hidden = tf.keras.layers.Dense(20, activation="relu")(inputs)
    model = tf.keras.Model(inputs, saved_ops.saved_scale(hidden))
    composite.save(model, tmp_path / "keras", "portable")
    y, (scale, zero) = run(converted(tmp_path / "keras", "int8"))
    np.testing.assert_allclose(composite.quant.dequantize(y, scale, zero), model(X), atol=6 * scale)
