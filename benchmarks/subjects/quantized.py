"""Layers on int8 beside TFLite's own kernels: a stack of dense layers, or of convolutions.

Each layer has weights of its own, scales for each channel, and a ReLU. TFLite's interpreter runs
the model that its converter quantizes, on as many threads as TensorFlow has; ours is a tf.function
of the ops of examples/quantized, its weights constants, called as an op, without tf.function's own
Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.rows import Row, emit
from benchmarks.sides.tensorflow_layers import as_op
from benchmarks.timing import KINDS, QUICK, interleave
from benchmarks.warm import warm
from composite import quant
from examples.quantized.ops import int8_conv2d, int8_dense

SECONDS = 0.2 if QUICK else 3.0
SCALES = {"x_scale": 1 / 127, "x_zero": 0, "y_scale": 1 / 127, "y_zero": 0, "activation": "RELU"}


@dataclass(frozen=True)
class Stack:
    """Layers alike, each as wide as its input."""

    shape: tuple[int, ...]
    filters: tuple[int, ...]
    depth: int

    def weights(self) -> list[tuple[Any, Any]]:
        """Weights and a bias for each layer, as floats."""
        random = np.random.default_rng(0)
        share = np.prod(self.filters[:-1]) ** -0.5
        return [
            (
                (random.standard_normal(self.filters) * share).astype(np.float32),
                random.standard_normal(self.filters[-1:]).astype(np.float32) * 0.1,
            )
            for _ in range(self.depth)
        ]

    def plain(self) -> Callable[[Any], Any]:
        """The layers on floats."""
        layers, is_dense = self.weights(), len(self.filters) == 2

        def run(x: Any) -> Any:
            for w, bias in layers:
                y = x @ w if is_dense else tf.nn.conv2d(x, w, 1, "SAME")
                x = tf.nn.relu(y + bias)
            return x

        return run

    def ours(self) -> Callable[[Any], Any]:
        """The layers on int8, by our ops."""
        layers = []
        for w, bias in self.weights():
            scale = np.abs(w).reshape(-1, w.shape[-1]).max(0) / 127
            q = quant.quantize(w, scale, axis=-1, narrow=True).numpy()
            layers.append((q, scale, np.round(bias / scale * 127).astype(np.int32)))
        op = int8_dense if len(self.filters) == 2 else int8_conv2d

        def run(x: Any) -> Any:
            for layer in layers:
                x = op(x, *map(tf.constant, layer), **SCALES)
            return x

        return run


STACKS = {
    "dense 1x512x512": Stack((1, 512), (512, 512), 32),
    "dense 32x256x256": Stack((32, 256), (256, 256), 32),
    "dense 128x512x512": Stack((128, 512), (512, 512), 16),
    "convolution 28x28x64, 3x3": Stack((1, 28, 28, 64), (3, 3, 64, 64), 8),
    "convolution 56x56x64, 3x3": Stack((1, 56, 56, 64), (3, 3, 64, 64), 8),
    "convolution 28x28x128, 1x1": Stack((1, 28, 28, 128), (1, 1, 128, 128), 16),
}


def rows() -> Iterator[Row]:
    """TFLite over ours, for each stack."""
    for name, stack in list(STACKS.items())[: 2 if QUICK and not KINDS else None]:
        if not KINDS or name in KINDS:
            yield _row(name, stack)


def _row(name: str, stack: Stack) -> Row:
    random = np.random.default_rng(1)
    x = tf.constant(random.integers(-128, 127, stack.shape, endpoint=True).astype(np.int8))
    interpreter = interpreter_of(stack)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x.numpy())
    ours = as_op(tf.function(stack.ours(), autograph=False), [x])
    ways = {"TFLite": interpreter.invoke, **warm({"ours": ours})}
    timings = interleave(ways, seconds=SECONDS)
    times = ", ".join(f"{way} {timings.microseconds(way).median:.1f}" for way in ways)
    ratio = timings.ratio("TFLite", "ours")
    return Row.of(f"int8 {name}, {stack.depth} layers: TFLite / ours", ratio, "x", detail=times)


def interpreter_of(stack: Stack) -> Any:
    """TFLite's interpreter of the layers in full int8."""
    random = np.random.default_rng(2)
    function = tf.function(stack.plain(), input_signature=[tf.TensorSpec(stack.shape)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    examples = [random.uniform(-1, 1, stack.shape).astype(np.float32) for _ in range(4)]
    converter.representative_dataset = lambda: ([one] for one in examples)
    threads = len(os.sched_getaffinity(0))
    interpreter = tf.lite.Interpreter(model_content=converter.convert(), num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


if __name__ == "__main__":
    emit(rows())
