"""Calls of a tf.function without the search for the trace that serves them.

At each call a tf.function describes all of its arguments to find that trace, which takes longer
than a small model runs. Here eager tensors, also in lists, tuples and dicts, are told apart by
dtypes and shapes alone; and where no tape is recording, nothing is done for tapes.

Written against private APIs of TF 2.21; tests/composite/acceleration/test_direct.py pins them.

Not for: other arguments, other ways to run a function (graphs, devices, strategies), for which the
tf.function is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context, record
from tensorflow.python.eager.polymorphic_function.atomic_function import InterpolateRuntimeError
from tensorflow.python.framework import ops

_MOST_TRACES = 64
# What TensorFlow tells such tensors apart by is more than a dtype and a shape.
_HANDLES = frozenset({tf.resource.as_datatype_enum, tf.variant.as_datatype_enum})


class DirectCalls:
    """A tf.function whose traces are found faster; called as it is. Thread-safe.

    Attributes:
        function: the tf.function.
    """

    def __init__(self, function: Any) -> None:
        """`function` makes no variables when it is called."""
        self.function = function
        self._traces: dict[tuple[Any, ...], _Trace] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the tf.function returns for these arguments."""
        flat: list[Any] = []
        kind: list[Any] = []
        if kwargs or not _is_plain() or not _describe(args, flat, kind):
            return self.function(*args, **kwargs)
        key = tuple(kind)
        trace = self._traces.get(key)
        if trace is not None:
            return trace(flat)
        result = self.function(*args)
        if len(self._traces) < _MOST_TRACES:
            self._traces[key] = _Trace(self.function.get_concrete_function(*args))
        return result


class _Trace:
    """A trace, called without what TensorFlow does for graphs and for tapes that are none.

    Its captures are those that it was traced with: nobody exchanges them later.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        function = trace._inference_function
        self._function, self._type = function, function.function_type
        self._captures = list(trace._captured_inputs)
        self._results = len(self._type.flat_outputs)
        # Captures may be known at the call alone, and calls may wait for others.
        is_plain = all(type(one) is ops.EagerTensor for one in self._captures)
        handles = (one.dtype.as_datatype_enum in _HANDLES for one in self._type.flat_outputs)
        waits = bool(function._call_options.control_captures)
        self._is_plain = is_plain and not waits and not any(handles)

    def __call__(self, flat: list[Any]) -> Any:
        """What the trace returns for these tensors."""
        if not self._is_plain or record.could_possibly_record():
            return self._trace._call_flat(flat, self._trace.captured_inputs)
        with InterpolateRuntimeError(self._function):
            outputs = context.context().call_function(
                self._function.name, flat + self._captures, self._results
            )
        return self._type.pack_output(outputs)


def _is_plain() -> bool:
    """Whether a call here is run at once, on no device and by no strategy that anybody names."""
    eager = context.context()
    if not eager.executing_eagerly() or eager.device_name:
        return False
    return not (tf.config.functions_run_eagerly() or tf.distribute.has_strategy())


def _describe(args: Sequence[Any], flat: list[Any], kind: list[Any]) -> bool:
    """Appends the tensors of arguments, and what tells these apart from others.

    False if there is anything but eager tensors in lists, tuples, and dicts with names as keys.
    """
    for one in args:
        if type(one) is ops.EagerTensor:
            dtype = one._datatype_enum()
            if dtype in _HANDLES:
                return False
            flat.append(one)
            kind += (dtype, one._shape_tuple())
        elif type(one) is list or type(one) is tuple:
            kind += (type(one), len(one))
            if not _describe(one, flat, kind):
                return False
        elif type(one) is dict and all(type(name) is str for name in one):
            names = sorted(one)  # the order in which a trace takes the values
            kind += (dict, *names)
            if not _describe([one[name] for name in names], flat, kind):
                return False
        else:
            return False
    return True
