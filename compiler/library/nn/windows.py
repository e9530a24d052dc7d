"""How convolutions and poolings are told their windows: sizes, strides, dilations, paddings.

Not for: the operations themselves (convolution.py, pooling.py). Functions of the op language, as
all of the library.
"""

from __future__ import annotations

from typing import Any


def channels_first(data_format: Any) -> Any:
    """Return whether the channels stand before the spatial axes: "NCHW"."""
    return data_format is not None and data_format[1] == "C"


def of_each_axis(value: Any, spatial: Any, first: Any) -> Any:
    """Return a number for each axis, from one, from one for each of `spatial` axes, or from all."""
    if value is None:
        return [1] * (spatial + 2)
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) == spatial + 2:
        return values
    if len(values) == 1:
        values = values * spatial
    if len(values) != spatial:
        raise ValueError(
            f"give 1, {spatial} or {spatial + 2} numbers for the axes of a window, not {values}"
        )
    return [1, 1] + values if first else [1] + values + [1]


def explicit(padding: Any) -> Any:
    """Return the padding's name, and the amounts of one that is a list of pairs."""
    if isinstance(padding, (list, tuple)):
        amounts = [amount for pair in padding for amount in pair]
        return "EXPLICIT", amounts
    return padding, []
