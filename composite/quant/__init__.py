"""Quantized tensors, by functions that composite bodies call; they run as plain Python too.

An integer q stands for the number scale * (q - zero_point), as in TFLite: one scale and zero point
for a tensor, or one for each slice of an axis. Rounding is to the nearest, ties to even.
"""

from __future__ import annotations

from composite.quant.integer_io import integer_io
from composite.quant.integers import (
    activation_range,
    conv2d,
    dequantize,
    matmul,
    quantize,
    requantize,
    rescale,
    scale_factor,
)
from composite.quant.training import fake_quant, parameters

__all__ = [
    "activation_range",
    "conv2d",
    "dequantize",
    "fake_quant",
    "integer_io",
    "matmul",
    "parameters",
    "quantize",
    "requantize",
    "rescale",
    "scale_factor",
]
