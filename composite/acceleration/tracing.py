"""Traces of the functions that are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from composite.ops.compiled_call import do_not_convert


class Known:
    """A ConcreteFunction that stands for the Python function that it was traced from.

    A function that calls it has its regions, gradients and variables: TensorFlow puts the nodes of
    a called function into its caller.

    Attributes:
        trace: the ConcreteFunction.
    """

    def __init__(self, trace: Any) -> None:
        """`trace` was made with the arguments that it is to be called with."""
        self.trace = trace
        self._taken = _described(*trace.structured_input_signature)

    def takes(self, args: Any, kwargs: Any) -> bool:
        """Whether these arguments, inside of a tf.function, would be traced to the same graph."""
        return _described(args, kwargs) == self._taken


do_not_convert(Known.takes)


def traced(
    call: Callable[..., Any],
    name: str,
    *,
    jit_compile: bool | None = None,
    known: Known | None = None,
) -> Any:
    """A function as a tf.function, which the runtime knows by this name.

    `known`: a trace of the same function, which is called instead of tracing it again.
    """

    def traced(*args: Any, **kwargs: Any) -> Any:
        if known is not None and known.takes(args, kwargs):
            return known.trace(*args, **kwargs)
        return call(*args, **kwargs)

    traced.__name__ = name
    return tf.function(traced, jit_compile=jit_compile)


def spec(value: Any) -> Any:
    """What a trace knows of an argument."""
    is_tensor = tf.is_tensor(value) or isinstance(value, tf.TensorSpec)
    return tf.TensorSpec(value.shape, value.dtype) if is_tensor else value


def _described(args: Any, kwargs: Any) -> str:
    """What a trace knows of its arguments, as text."""
    return repr(tf.nest.map_structure(spec, (tuple(args), dict(kwargs))))
