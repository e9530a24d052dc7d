"""Running sums and products of tf.math."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.cumsum", "tf.math.cumsum")
def cumsum(
    x: Any, axis: Any = 0, exclusive: Any = False, reverse: Any = False, name: Any = None
) -> Any:
    """Running sums along an axis."""
    return tf.raw_ops.Cumsum(x=x, axis=axis, exclusive=exclusive, reverse=reverse, name=name)


@public("tf.math.cumprod")
def cumprod(
    x: Any, axis: Any = 0, exclusive: Any = False, reverse: Any = False, name: Any = None
) -> Any:
    """Running products along an axis."""
    return tf.raw_ops.Cumprod(x=x, axis=axis, exclusive=exclusive, reverse=reverse, name=name)


@public("tf.math.cumulative_logsumexp")
def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: Any = False, reverse: Any = False, name: Any = None
) -> Any:
    """Logarithms of running sums of exponentials along an axis."""
    return tf.raw_ops.CumulativeLogsumexp(
        x=x, axis=axis, exclusive=exclusive, reverse=reverse, name=name
    )
