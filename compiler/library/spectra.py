"""Fourier transforms of real numbers, of tf.signal; those of complex ones are one op each."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.signal.rfft")
def rfft(input_tensor: Any, fft_length: Any = None, name: Any = None) -> Any:
    """The transform over the last axis, of its length or of one given."""
    x = tf.convert_to_tensor(input_tensor)
    length = _length(x, 1, fft_length)
    return tf.raw_ops.RFFT(
        input=_padded(x, 1, length), fft_length=length, Tcomplex=_complex(x.dtype), name=name
    )


@public("tf.signal.rfft2d")
def rfft2d(input_tensor: Any, fft_length: Any = None, name: Any = None) -> Any:
    """The transform over the last two axes."""
    x = tf.convert_to_tensor(input_tensor)
    length = _length(x, 2, fft_length)
    return tf.raw_ops.RFFT2D(
        input=_padded(x, 2, length), fft_length=length, Tcomplex=_complex(x.dtype), name=name
    )


@public("tf.signal.rfft3d")
def rfft3d(input_tensor: Any, fft_length: Any = None, name: Any = None) -> Any:
    """The transform over the last three axes."""
    x = tf.convert_to_tensor(input_tensor)
    length = _length(x, 3, fft_length)
    return tf.raw_ops.RFFT3D(
        input=_padded(x, 3, length), fft_length=length, Tcomplex=_complex(x.dtype), name=name
    )


def _length(x: Any, axes: Any, given: Any) -> Any:
    return tf.shape(x)[-axes:] if given is None else tf.cast(given, tf.int32)


def _complex(dtype: Any) -> Any:
    if dtype == tf.float32:
        return tf.complex64
    if dtype == tf.float64:
        return tf.complex128
    raise ValueError(f"a Fourier transform of real numbers takes float32 or float64, not {dtype}")


def _padded(x: Any, axes: Any, length: Any) -> Any:
    """Return x with zeros up to the length of the transform; the op itself cuts what is longer."""
    missing = tf.raw_ops.Maximum(x=0, y=length - tf.shape(x)[-axes:])
    after = tf.concat([[0] * (x.shape.rank - axes), missing], 0)
    return tf.raw_ops.Pad(input=x, paddings=tf.stack([tf.zeros_like(after), after], axis=1))


@public("tf.signal.fftshift")
def fftshift(x: Any, axes: Any = None, name: Any = None) -> Any:
    """Move the zero frequency to the middle of the axes, by default of all."""
    x = tf.convert_to_tensor(x)
    places = _places(x, axes)
    shift = tf.raw_ops.FloorDiv(x=tf.gather(tf.shape(x), places), y=2)
    return tf.raw_ops.Roll(input=x, shift=shift, axis=places, name=name)


@public("tf.signal.ifftshift")
def ifftshift(x: Any, axes: Any = None, name: Any = None) -> Any:
    """Move the zero frequency from the middle of the axes to their beginning."""
    x = tf.convert_to_tensor(x)
    places = _places(x, axes)
    shift = tf.raw_ops.FloorDiv(x=tf.gather(tf.shape(x), places), y=2)
    return tf.raw_ops.Roll(input=x, shift=-shift, axis=places, name=name)


def _places(x: Any, axes: Any) -> Any:
    rank = x.shape.rank
    if axes is None:
        return list(range(rank))
    places = axes if isinstance(axes, (list, tuple)) else [axes]
    return [place + rank if place < 0 else place for place in places]
