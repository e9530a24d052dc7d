"""Inputs of one call, drawn where nobody gave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

SIZE = 8  # of a dim that is not known


def drawn(specs: Any, size: int | Callable[[int], int] = SIZE, texts: Sequence[bytes] = ()) -> Any:
    """Tensors of these specs, in their structure: floats of [0, 1), integers 0 and 1.

    `size` is that of dims that are not known, or tells it of an axis. A tensor of strings has
    `texts` in turn. Ragged and sparse ones have the elements of such tensors. ValueError for a spec
    without a rank, and of strings where there are no texts.
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
    """Sizes, by axis, of calls that differ from one drawn with `size` in all dims not known.

    No two axes are equal, so that kernels do not take them for one; the last is a batch of one.
    """
    return [lambda axis: 2 * size + axis, lambda axis: 2 * size + axis if axis else 1]
