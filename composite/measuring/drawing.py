"""The inputs that kernels are measured on.

Not for: the inputs that kernels are checked on (kernels/samples.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

# Other values for integers that are drawn as 0 and 1.
_ANY, _ONES, _ZEROS = (lambda x: x), (lambda x: x | 1), (lambda x: x * 0)
_BELOW_ONE = lambda x: abs(x) % 1  # noqa: E731

NUMBERS = ((_ANY, _ANY), (_ONES, _ANY), (_ZEROS, _ANY), (_ZEROS, _BELOW_ONE))
"""Values of integers and of floating numbers, to be tried in turn until the ops accept them.

The ops may divide by a zero; but 0 is the only index into a dim of size 1, and floats may be cast
to indices.
"""


def drawn(specs: Sequence[tf.TensorSpec], sizes: Sequence[int | None], numbers: Any) -> list[Any]:
    """Arrays for these specs, with one of NUMBERS; `sizes`: the values of inputs that are sizes."""
    random = np.random.default_rng(0)
    integers, floating = numbers
    found = [draw(spec, random) for spec in specs]
    for i, spec in enumerate(specs):
        if spec.dtype.is_integer or spec.dtype.is_floating:
            found[i] = (integers if spec.dtype.is_integer else floating)(found[i])
    return [x if n is None else np.asarray(n, x.dtype) for x, n in zip(found, sizes, strict=True)]


def copies(arrays: Sequence[Any], count: int, device: str) -> list[Any]:
    """Copies of the same numbers, since drawing new ones takes longer than measuring."""
    with tf.device(device):
        return [tf.constant(array.copy()) for _ in range(count) for array in arrays]


def accepted(
    functions: Sequence[Callable[..., Any]],
    specs: Sequence[tf.TensorSpec],
    sizes: Sequence[int | None],
    count: int,
    device: str,
) -> list[Any]:
    """Inputs for so many calls that the functions accept; each function has run once on them.

    Raises InvalidArgumentError if they accept none of NUMBERS.
    """
    inputs: list[Any] = []
    for numbers in NUMBERS:
        inputs = copies(drawn(specs, sizes, numbers), count, device)
        try:
            for function in functions:
                function(*inputs)
            break
        except tf.errors.InvalidArgumentError:
            if numbers is NUMBERS[-1]:
                raise
    return inputs


def draw(spec: tf.TensorSpec, random: np.random.Generator) -> Any:
    """One array: normal numbers, or zeros and ones."""
    shape, dtype = spec.shape.as_list(), spec.dtype.as_numpy_dtype
    if spec.dtype.is_floating:
        return random.standard_normal(shape, np.float32).astype(dtype, copy=False)
    return random.integers(0, 2, shape).astype(dtype)
