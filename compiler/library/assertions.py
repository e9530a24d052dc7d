"""Assertions on values: errors when the op runs. tf.debugging.check_numerics is one op."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.debugging.Assert", "tf.Assert")
def assert_(condition: Any, data: Any, summarize: Any = None, name: Any = None) -> Any:
    """An InvalidArgumentError that shows the data, unless the condition holds."""
    tf.raw_ops.Assert(
        condition=condition, data=data, summarize=3 if summarize is None else summarize, name=name
    )


@public("tf.debugging.assert_all_finite")
def assert_all_finite(x: Any, message: Any, name: Any = None) -> Any:
    """The tensor; an InvalidArgumentError with the message if a number is infinite or NaN."""
    return tf.raw_ops.CheckNumerics(tensor=x, message=message, name=name)
