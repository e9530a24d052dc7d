"""Saturating casts, dtypes of images and Fourier transforms as the library has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import library
from tests.compiler.library.cases import made

pytestmark = pytest.mark.many_cases

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
PIXELS = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 4, 3)

CASES: list[tuple[Any, ...]] = [
    ("tf.image.convert_image_dtype(x, tf.uint8)", PIXELS),
    ("tf.image.convert_image_dtype(x, tf.uint8, saturate=True)", PIXELS * 3 - 1),
    ("tf.image.convert_image_dtype(x, tf.float32)", "uint8[2, 4, 3]"),
    ("tf.image.convert_image_dtype(x, dtype=tf.float16)", PIXELS),
    ("tf.image.convert_image_dtype(x, tf.uint16)", "uint8[2, 4, 3]"),
    ("tf.image.convert_image_dtype(x, tf.uint8)", "int32[2, 4, 3]"),
    ("tf.image.convert_image_dtype(x, tf.float32)", PIXELS),
    ("tf.image.adjust_brightness(x, 0.1)", PIXELS),
    ("tf.image.adjust_brightness(x, delta=-0.3)", "uint8[2, 4, 3]"),
    ("tf.image.adjust_contrast(x, 2.0)", PIXELS),
    ("tf.image.adjust_contrast(x, 0.5)", "uint8[2, 4, 3]"),
    ("tf.image.adjust_gamma(x, 2.5, gain=0.5)", PIXELS),
    ("tf.image.rgb_to_grayscale(x)", PIXELS),
    ("tf.image.rgb_to_grayscale(x)", "uint8[2, 4, 3]"),
    ("tf.signal.rfft(x)", "float32[3, 6]"),
    ("tf.signal.rfft(x, fft_length=[8])", "float64[3, 6]"),
    ("tf.signal.rfft(x, [4])", "float32[6]"),
    ("tf.signal.rfft2d(x)", "float32[2, 3, 6]"),
    ("tf.signal.rfft2d(x, [4, 4])", "float64[3, 6]"),
    ("tf.signal.rfft3d(x)", "float32[2, 3, 4]"),
    *[(f"tf.signal.{name}(x)", "float32[3, 4]") for name in ("fftshift", "ifftshift")],
    *[(f"tf.signal.{name}(x, axes=-1)", "complex64[3, 5]") for name in ("fftshift", "ifftshift")],
    ("tf.signal.fftshift(x, [1, 0])", "float32[3, 4, 2]"),
    ("tf.signal.fft2d(x)", "complex64[3, 4]"),
    ("tf.debugging.assert_all_finite(x, 'a number is lost')", "float32[2, 3]"),
    ("tf.saturate_cast(x, tf.uint8)", np.array([-3.5, 7, 300], np.float32)),
    ("tf.dtypes.saturate_cast(x, dtype=tf.int8)", np.array([-300, 7, 300], np.int32)),
]


@pytest.mark.parametrize(("text", "inputs"), [(text, inputs) for text, *inputs in CASES])
def test_as_tensorflow(text: str, inputs: list[Any], case: Callable[[str], Any]) -> None:
    values = [made(spec, seed) for seed, spec in enumerate(inputs)]
    case(text).check(*values, traced=True)


@pytest.mark.parametrize("wanted", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("own", [*FLOATS, *INTEGERS[:-1]])  # TensorFlow clips no uint32
def test_saturating_casts_between_all_ranges(
    own: str, wanted: str, case: Callable[[str], Any]
) -> None:
    numbers = tf.as_dtype(own)
    ends = [numbers.min, numbers.max, 0, 1, 100, 127]
    case(f"tf.saturate_cast(x, tf.{wanted})").check(np.array(ends, numbers.as_numpy_dtype))


@pytest.mark.parametrize(
    ("own", "wanted", "given", "expected"),
    [
        # TensorFlow 2.21 itself gives -9.2e18 for each of the first, by way of a float of its own.
        ("int64", "float32", [3, -(2**63)], [3.0, -(2.0**63)]),
        ("float32", "uint64", [1e30, -2.0], [2**64 - 2**40, 0]),
        ("float64", "int64", [1e30, -1e30], [2**63 - 2**10, -(2**63)]),
        ("uint64", "int64", [2**63, 5], [2**63 - 1, 5]),
        ("int64", "uint64", [-1, 5], [0, 5]),
        ("int64", "float16", [10**6, -(10**6)], [65504.0, -65504.0]),
        ("uint64", "uint8", [2**63, 5], [255, 5]),
    ],
)
def test_saturating_casts_of_64_bits(
    own: str, wanted: str, given: list[Any], expected: list[Any]
) -> None:
    entry = library.find(tf.saturate_cast)
    assert entry is not None
    result = entry.function(tf.constant(given, own), tf.as_dtype(wanted))
    np.testing.assert_array_equal(result, np.array(expected, wanted))
