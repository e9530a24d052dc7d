"""Draws the inputs of a call that the user did not give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

SIZE = 8  # of an unknown dim


def drawn(specs: Any, size: int | Callable[[int], int] = SIZE, texts: Sequence[bytes] = ()) -> Any:
    """Random tensors for these specs, in their structure: floats in [0, 1), integers 0 and 1.

    `size` is the size of unknown dims, or a function that gives it for an axis. Tensors of strings
    repeat `texts`. Ragged and sparse tensors hold the elements of such dense ones. ValueError for a
    spec of unknown rank, and for a spec of strings without `texts`.
    """
    random = np.random.default_rng(0)
    size_of = (lambda _: size) if isinstance(size, int) else size

    def draw(spec: Any) -> Any:
        whole = draw_tensor(spec)
        if isinstance(spec, tf.SparseTensorSpec):
            return tf.sparse.from_dense(whole)
        if isinstance(spec, tf.RaggedTensorSpec):
            rank, splits = spec.ragged_rank, spec.row_splits_dtype
            return tf.RaggedTensor.from_tensor(whole, ragged_rank=rank, row_splits_dtype=splits)
        return whole

    def draw_tensor(spec: Any) -> Any:
        dtype = tf.as_dtype(spec.dtype)
        is_number = dtype.is_floating or dtype.is_complex or dtype.is_integer or dtype.is_bool
        is_text = dtype == tf.string and bool(texts)
        shape = tf.TensorShape(spec.shape)
        if shape.rank is None or not (is_number or is_text):
            what = f"are {dtype.name}" if shape.rank is not None else "have no rank"
            told = spec.name if isinstance(spec, tf.TensorSpec) else spec
            raise ValueError(f"values of input {told} cannot be drawn, they {what}: give them")
        sizes = [size_of(axis) if one is None else one for axis, one in enumerate(shape)]
        if is_text:
            return tf.constant(np.resize(np.array(texts, object), sizes), dtype)
        is_whole = dtype.is_integer or dtype.is_bool
        return tf.cast(random.integers(0, 2, sizes) if is_whole else random.random(sizes), dtype)

    return tf.nest.map_structure(draw, specs)


def others(size: int) -> list[Callable[[int], int]]:
    """Functions from axis to size for calls that differ from one with `size` in all unknown dims.

    Axes have different sizes, so that kernels do not treat them as equal. The last call has a batch
    of 1.
    """
    return [lambda axis: 2 * size + axis, lambda axis: 2 * size + axis if axis else 1]
