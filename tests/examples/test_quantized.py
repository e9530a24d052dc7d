"""A dense layer and a convolution on int8, beside TFLite's own kernels and in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import quant
from examples.quantized import ops

RANDOM = np.random.default_rng(20)
# What holds for kernels is held by them; the rest of the ways are the body's own ops.
WAYS = ["eager", "unknown dims", "kernel", "kernel, unaligned", "XLA"]


def uniform(*shape: int) -> Any:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


class Dense(tf.Module):
    shape = (6, 33)

    def __init__(self) -> None:
        super().__init__()
        self.w, self.bias = uniform(33, 17), uniform(17)

    @tf.function(input_signature=[tf.TensorSpec(shape)])
    def __call__(self, x: Any) -> Any:
        return tf.nn.relu6(4.0 * (tf.matmul(x, self.w) + self.bias))


class Convolution(tf.Module):
    shape = (2, 9, 9, 5)

    def __init__(self) -> None:
        super().__init__()
        self.w, self.bias = uniform(3, 3, 5, 7), uniform(7)

    @tf.function(input_signature=[tf.TensorSpec(shape)])
    def __call__(self, x: Any) -> Any:
        return tf.nn.relu(tf.nn.conv2d(x, self.w, 2, "SAME") + self.bias)


def interpreter_of(model: Any) -> Any:
    """TFLite's interpreter of the model in full int8."""
    concrete = model.__call__.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8

    def examples() -> Iterator[list[Any]]:
        for _ in range(20):
            yield [uniform(*model.shape)]

    converter.representative_dataset = examples
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    return interpreter


def layer_of(interpreter: Any, rank: int) -> dict[str, Any]:
    """What TFLite has of the one layer: its input, output, weights of that rank, and bias."""
    found = {"x": interpreter.get_input_details()[0], "y": interpreter.get_output_details()[0]}
    ends = [one["index"] for one in found.values()]
    for tensor in interpreter.get_tensor_details():
        if tensor["index"] in ends or not tensor["quantization_parameters"]["scales"].size:
            continue
        if (tensor["dtype"], len(tensor["shape"])) == (np.int8, rank):
            found["w"] = tensor
        if (tensor["dtype"], len(tensor["shape"])) == (np.int32, 1):
            found["bias"] = tensor
    return found


@pytest.mark.parametrize("kind", [Dense, Convolution])
def test_within_one_step_of_tflite(kind: Any) -> None:
    model = kind()
    interpreter = interpreter_of(model)
    found = layer_of(interpreter, model.w.ndim)
    (x_scale, x_zero), (y_scale, y_zero) = (found[name]["quantization"] for name in "xy")
    numbers = uniform(*model.shape)
    x = quant.quantize(numbers, x_scale, x_zero).numpy()
    interpreter.set_tensor(found["x"]["index"], x)
    interpreter.invoke()
    theirs = interpreter.get_tensor(found["y"]["index"])
    w, bias = (interpreter.get_tensor(found[name]["index"]) for name in ("w", "bias"))
    w_scale = np.broadcast_to(found["w"]["quantization_parameters"]["scales"], bias.shape)
    scales = {"x_scale": x_scale, "x_zero": x_zero, "y_scale": y_scale, "y_zero": y_zero}
    if kind is Dense:
        op, attrs = ops.int8_dense, {**scales, "activation": "RELU6"}
        w = np.ascontiguousarray(w.T)
    else:
        op, attrs = ops.int8_conv2d, {**scales, "activation": "RELU", "stride": 2}
        w = np.ascontiguousarray(np.moveaxis(w, 0, -1))
    report = composite.check(op, x, w, w_scale, bias, **attrs, ways=WAYS, samples=1)
    assert all(row.samples == 1 for row in report.rows), report
    ours = op(x, w, w_scale, bias, **attrs)
    assert ours.dtype == tf.int8
    assert np.abs(ours.numpy().astype(int) - theirs).max() <= 1
    assert np.unique(theirs).size > 25
    back = quant.dequantize(ours, y_scale, y_zero)
    np.testing.assert_allclose(back, model(numbers), atol=12 * y_scale)


def test_training_sees_what_int8_leaves() -> None:
    x, w, bias = uniform(8, 12), uniform(12, 4), uniform(4)
    report = composite.check(
        ops.quantization_aware_dense, x, w, bias, x_scale=0.008, x_zero=0, samples=1,
        ways=["eager", "tf.function", "gradient", "kernel"],
    )  # fmt: skip
    assert all(row.samples == 1 for row in report.rows), report
    with tf.GradientTape() as tape:
        weights = tf.Variable(w)
        y = ops.quantization_aware_dense(x, weights, bias, x_scale=0.008, x_zero=0)
    np.testing.assert_allclose(y, x @ w + bias, atol=0.05)
    # As if nothing were rounded but x.
    wanted = quant.fake_quant(tf.constant(x), 0.008).numpy().sum(0)[:, None] * np.ones((1, 4))
    np.testing.assert_allclose(tape.gradient(y, weights), wanted, rtol=1e-5)
