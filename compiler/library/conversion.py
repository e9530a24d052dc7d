"""Conversions between number ranges: saturating casts, and the dtypes of images."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import COMPLEX
from composite.compiler.library.names import public

# Integers: how many bits the magnitude has, and the lowest number.
_INTEGERS = (
    *((tf.int8, 7, -(2**7)), (tf.int16, 15, -(2**15))),
    *((tf.int32, 31, -(2**31)), (tf.int64, 63, -(2**63))),
    *((tf.uint8, 8, 0), (tf.uint16, 16, 0), (tf.uint32, 32, 0), (tf.uint64, 64, 0)),
)
# Floats: how many binary digits there are, and the largest number.
_FLOATS = (
    (tf.float16, 11, 65504.0),
    (tf.bfloat16, 8, 3.3895313892515355e38),
    (tf.float32, 24, 3.4028234663852886e38),
    (tf.float64, 53, 1.7976931348623157e308),
)


@public("tf.saturate_cast", "tf.dtypes.saturate_cast")
def saturate_cast(value: Any, dtype: Any, name: Any = None) -> Any:
    """The values of real numbers as another dtype; what is beyond its range becomes its end."""
    value = tf.convert_to_tensor(value)
    if value.dtype in COMPLEX or dtype in COMPLEX:
        raise ValueError("tf.saturate_cast is of real numbers in a body: take tf.math.real")
    low, high = _ends(value.dtype, dtype)
    if low is not None:
        value = tf.raw_ops.Maximum(x=value, y=low)
    if high is not None:
        value = tf.raw_ops.Minimum(x=value, y=high)
    return tf.cast(value, dtype, name=name)


def _ends(own: Any, wanted: Any) -> Any:
    """Return the numbers of one dtype nearest to the ends of another, None where none is beyond."""
    for dtype, digits, largest in _FLOATS:
        if own == dtype:
            return _ends_of_floats(digits, largest, wanted)
    bits, lowest = _integer(own)
    for dtype, _digits, largest in _FLOATS:
        if wanted == dtype:
            # Half precision alone ends before integers do.
            return (-65504 if lowest < 0 else 0, 65504) if largest < 2.0**bits else (None, None)
    wanted_bits, wanted_lowest = _integer(wanted)
    low = wanted_lowest if lowest < wanted_lowest else None
    high = 2**wanted_bits - 1 if wanted_bits < bits else None
    return low, high


def _ends_of_floats(digits: Any, largest: Any, wanted: Any) -> Any:
    for dtype, _digits, wanted_largest in _FLOATS:
        if wanted == dtype:
            if wanted_largest >= largest:
                return None, None
            # The largest bfloat16 below the end of half precision has fewer digits.
            end = 65280.0 if digits < 11 and wanted_largest == 65504.0 else wanted_largest
            return -end, end
    bits, lowest = _integer(wanted)
    end = 2.0**bits - (1.0 if bits <= digits else 2.0 ** (bits - digits))
    low = lowest * 1.0
    return (low if low > -largest else -largest), (end if end < largest else largest)


def _integer(wanted: Any) -> Any:
    for dtype, bits, lowest in _INTEGERS:
        if wanted == dtype:
            return bits, lowest
    raise TypeError(f"numbers of {wanted} have no range")


@public("tf.image.convert_image_dtype")
def convert_image_dtype(image: Any, dtype: Any, saturate: Any = False, name: Any = None) -> Any:
    """Images as another dtype: floats are from 0 to 1, integers from 0 to their largest."""
    image = tf.convert_to_tensor(image)
    own = image.dtype
    if own == dtype:
        return tf.raw_ops.Identity(input=image, name=name)
    own_is_float = _is_float(own)
    if own_is_float and _is_float(dtype):
        return tf.cast(image, dtype, name=name)
    if own_is_float:
        bits, _ = _integer(dtype)
        scaled = tf.raw_ops.Mul(x=image, y=2.0**bits - 0.5)
        return saturate_cast(scaled, dtype) if saturate else tf.cast(scaled, dtype, name=name)
    own_bits, _ = _integer(own)
    if _is_float(dtype):
        return tf.raw_ops.Mul(x=tf.cast(image, dtype), y=1.0 / (2.0**own_bits - 1.0), name=name)
    bits, _ = _integer(dtype)
    if own_bits > bits:
        scaled = tf.raw_ops.FloorDiv(x=image, y=2 ** (own_bits - bits))
        return saturate_cast(scaled, dtype) if saturate else tf.cast(scaled, dtype, name=name)
    wide = saturate_cast(image, dtype) if saturate else tf.cast(image, dtype)
    return tf.raw_ops.Mul(x=wide, y=2 ** (bits - own_bits), name=name)


def _is_float(dtype: Any) -> Any:
    found = False
    for one, _digits, _largest in _FLOATS:
        found = found or one == dtype
    return found


@public("tf.image.adjust_brightness")
def adjust_brightness(image: Any, delta: Any) -> Any:
    """Add to all pixels, on the scale from 0 to 1."""
    image = tf.convert_to_tensor(image)
    numbers = _as_floats(image)
    return convert_image_dtype(numbers + tf.cast(delta, numbers.dtype), image.dtype, saturate=True)


@public("tf.image.adjust_contrast")
def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """Move each channel's pixels away from its mean by a factor."""
    images = tf.convert_to_tensor(images)
    adjusted = tf.raw_ops.AdjustContrastv2(
        images=_as_floats(images), contrast_factor=contrast_factor
    )
    return convert_image_dtype(adjusted, images.dtype, saturate=True)


@public("tf.image.adjust_gamma")
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """Gain * image ** gamma, on the scale from 0 to 1."""
    image = tf.convert_to_tensor(image)
    if not isinstance(gamma, tf.Tensor) and gamma < 0:
        raise ValueError(f"tf.image.adjust_gamma: gamma cannot be negative, as {gamma} is")
    adjusted = gain * _as_floats(image) ** gamma
    return convert_image_dtype(adjusted, image.dtype, saturate=True)


def _as_floats(image: Any) -> Any:
    if image.dtype in (tf.float16, tf.float32):
        return image
    return convert_image_dtype(image, tf.float32)


@public("tf.image.rgb_to_grayscale")
def rgb_to_grayscale(images: Any, name: Any = None) -> Any:
    """The one channel that the three make, as the eye weighs them."""
    images = tf.convert_to_tensor(images)
    weights = tf.constant([0.2989, 0.587, 0.114])
    gray = tf.tensordot(convert_image_dtype(images, tf.float32), weights, [-1, -1])
    return convert_image_dtype(tf.expand_dims(gray, -1), images.dtype, name=name)
