"""Variables among the inputs of a call: a sample has what they hold, each run gets new ones.

Not for: what is drawn for them (samples.py), and gradients, which are not compared through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.ops import call_arguments

Array = np.ndarray[Any, Any]


def contents(name: str, value: Any) -> Array:
    """What the variable holds that is given for input `name`; an array is what one holds.

    TypeError for the handle of one.
    """
    if tf.is_tensor(value) and not isinstance(value, tf.Variable) and value.dtype == tf.resource:
        raise TypeError(
            f"composite.check takes the variable for {name!r}, or an array of what it holds, not a "
            "handle: it makes a variable of its own for each run"
        )
    return np.asarray(tf.convert_to_tensor(getattr(value, "_value", value)).numpy())


def of(inputs: Sequence[Any]) -> list[tf.Variable]:
    """The variables among inputs, those in lists as well."""
    return [x for x in tf.nest.flatten(inputs) if isinstance(x, tf.Variable)]


def handles(inputs: Sequence[Any]) -> list[Any]:
    """The inputs with handles in place of variables, as a Python function takes them."""
    return [call_arguments.resource(x) if of([x]) else x for x in inputs]


def results(function: Callable[[Any], Any], inputs: Sequence[Any]) -> list[Any]:
    """Runs a call: its outputs, flat, and then what the variables among its inputs hold."""
    result = function(inputs)
    outputs = [] if result is None else tf.nest.flatten(result)
    return [*outputs, *(variable.read_value() for variable in of(inputs))]
