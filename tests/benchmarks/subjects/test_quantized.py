"""Stacks of layers on int8: what is timed computes the layers on floats, roughly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.subjects import quantized
from benchmarks.subjects.quantized import SCALES, Stack
from composite import quant

DENSE, CONVOLUTION = Stack((3, 24), (24, 24), 1), Stack((1, 6, 6, 8), (3, 3, 8, 8), 1)


@pytest.mark.parametrize("stack", [DENSE, CONVOLUTION])
def test_both_sides_are_the_same_layers(stack: Stack) -> None:
    numbers = np.random.default_rng(0).uniform(-0.3, 0.3, stack.shape).astype(np.float32)
    x = quant.quantize(numbers, SCALES["x_scale"])
    ours = quant.dequantize(tf.function(stack.ours())(x), SCALES["y_scale"])
    expected = np.minimum(stack.plain()(numbers), 1)
    np.testing.assert_allclose(ours, expected, atol=0.03)
    interpreter = quantized.interpreter_of(stack)
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(given["index"], quant.quantize(numbers, *given["quantization"]).numpy())
    interpreter.invoke()
    theirs = quant.dequantize(interpreter.get_tensor(result["index"]), *result["quantization"])
    np.testing.assert_allclose(np.minimum(theirs, 1), expected, atol=0.03)


def test_a_row_has_both_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "SECONDS", 0.01)
    monkeypatch.setattr(quantized, "STACKS", {"small": DENSE})
    monkeypatch.setattr(quantized, "KINDS", ())
    rows: list[Any] = list(quantized.rows())
    assert [row.what for row in rows] == ["int8 small, 1 layers: TFLite / ours"]
    assert all(way in rows[0].detail for way in ("TFLite", "ours"))
