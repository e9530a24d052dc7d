"""Inputs of one call, drawn where nobody gave them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

SIZE = 8  # of a dim that is not known


def drawn(specs: Any, size: int = SIZE) -> Any:
    """Tensors of these specs, in their structure: floats of [0, 1), integers 0 and 1.

    `size` is that of dims that are not known. ValueError for a spec without a rank, or of strings.
    """
    random = np.random.default_rng(0)

    def draw(spec: Any) -> Any:
        dtype = tf.as_dtype(spec.dtype)
        is_number = dtype.is_floating or dtype.is_complex or dtype.is_integer or dtype.is_bool
        shape = tf.TensorShape(spec.shape)
        if shape.rank is None or not is_number:
            what = f"are {dtype.name}" if shape.rank is not None else "have no rank"
            raise ValueError(f"values of input {spec.name} cannot be drawn, they {what}: give them")
        sizes = [size if one is None else one for one in shape]
        is_whole = dtype.is_integer or dtype.is_bool
        return tf.cast(random.integers(0, 2, sizes) if is_whole else random.random(sizes), dtype)

    return tf.nest.map_structure(draw, specs)
