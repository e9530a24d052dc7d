"""Comparisons of tf.math, and tf.where.

tf.less, greater, logical_and, logical_or, logical_not and tf.math.is_nan are one op each.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.equal", "tf.math.equal")
def equal(x: Any, y: Any, name: Any = None) -> Any:
    """Whether x == y; shapes that do not broadcast are an error, unlike with the operator."""
    return tf.raw_ops.Equal(x=x, y=y, name=name)


@public("tf.not_equal", "tf.math.not_equal")
def not_equal(x: Any, y: Any, name: Any = None) -> Any:
    """Whether x != y; shapes that do not broadcast are an error, unlike with the operator."""
    return tf.raw_ops.NotEqual(x=x, y=y, name=name)


@public("tf.math.logical_xor")
def logical_xor(x: Any, y: Any, name: Any = "LogicalXor") -> Any:
    """True where one of x and y is true."""
    both = tf.raw_ops.LogicalAnd(x=x, y=y)
    return tf.raw_ops.LogicalAnd(
        x=tf.raw_ops.LogicalOr(x=x, y=y), y=tf.raw_ops.LogicalNot(x=both), name=name
    )


@public("tf.where")
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """Choose x where the condition holds, y elsewhere; without them the indices where it holds."""
    if x is None and y is None:
        return tf.raw_ops.Where(condition=condition, name=name)
    if x is None or y is None:
        raise ValueError("tf.where takes both x and y, or neither")
    return tf.raw_ops.SelectV2(condition=condition, t=x, e=y, name=name)
