"""The bodies whose programs the loader's fuzz damages.

A file of their own, since the golden programs hold their places.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def branches(x: Any, y: Any, k: Any, act: Any) -> Any:
    """Branches on an attribute and on a tensor, a raise, strings."""
    if act == "RELU":
        x = tf.raw_ops.Relu(features=x)
    elif act:
        raise ValueError(f"no {act} for {k}")
    if tf.reduce_sum(x) > k:
        return x + y
    return x - y * k


def loops(x: Any, y: Any, k: Any, act: Any) -> Any:
    """Loops that are counted, and one that a tensor decides."""
    parts = [x, y]
    for i, (p, c) in enumerate(zip(parts, reversed(range(k)))):  # noqa: B905
        x = x + p * c if i else x - p
    while tf.reduce_sum(x * x) > 1.0 and len(act) < 3:
        x = x / 2
    return x


def shapes(x: Any, y: Any, k: Any, act: Any) -> Any:
    """Shapes, subscripts, dtypes, several outputs of an op."""
    values, _ = tf.raw_ops.TopKV2(input=x, k=k + 1)
    if x.shape.rank == 2 and act != "X":
        x = x[..., ::-1][None, 0]
    x = tf.raw_ops.Cast(x=x * x.shape[-1] + values[..., :1], DstT=y.dtype)
    return x + tf.raw_ops.Sum(input=y, axis=[-1], keep_dims=True)
