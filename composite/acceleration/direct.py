"""Calls of a tf.function without the search for the trace that serves them.

At each call a tf.function describes all of its arguments to find that trace, which takes longer
than a small model runs. Here eager tensors and NumPy's arrays, also in lists, tuples and dicts, are
told apart by dtypes and shapes alone; and where no tape is recording, nothing is done for tapes.

TensorFlow hands a function over to other threads, and takes each variable as one more argument. A
trace that several threads could not share runs as one op, on the thread of its caller, which reads
the variables by itself (composite/runtime/direct).

Written against private APIs of TF 2.21; tests/composite/acceleration/test_direct.py pins them.

Not for: other arguments, other ways to run a function (graphs, devices, strategies), for which the
tf.function is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import cancellation, context, core, execute, record
from tensorflow.python.eager.polymorphic_function.atomic_function import InterpolateRuntimeError
from tensorflow.python.framework import ops

from composite.binding import native
from composite.ops import call

_MOST_TRACES = 64
_runs_eagerly = tf.config.functions_run_eagerly
# What TensorFlow tells such tensors apart by is more than a dtype and a shape.
_HANDLES = frozenset({tf.resource, tf.variant})
_NUMBERS = frozenset("?bBhHiIlLqQefdFD")  # by NumPy's codes


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
        # TensorFlow looks at each Python function that is active when it is given an op, which
        # takes time: hence all in one.
        eager = context.context()
        here = eager._thread_local_data
        flat: list[Any] = []
        kind: list[Any] = []
        if kwargs or not _is_plain(here) or not _describe(args, flat, kind):
            return self.function(*args, **kwargs)
        trace = self._traces.get(tuple(kind))
        if trace is None:
            return self._trace(args, flat, tuple(kind))
        op = trace.op
        if op is None or not op.is_current(here) or record.could_possibly_record():
            return trace(flat)
        try:
            outputs = pywrap_tfe.TFE_Py_Execute(
                eager._handle, None, op.name, [op.function, *flat], (), trace.results
            )
        except core._NotOkStatusException:
            return trace(flat)  # the function says better what is wrong
        return outputs[0] if trace.is_tensor else trace.type.pack_output(outputs)

    def _trace(self, args: Sequence[Any], flat: list[Any], key: tuple[Any, ...]) -> Any:
        """The first call of a kind, which is remembered."""
        result = self.function(*args)
        if len(self._traces) < _MOST_TRACES and not any(map(_is_handle, flat)):
            self._traces[key] = _Trace(self.function.get_concrete_function(*args))
        return result


class _Trace:
    """A trace, called without what TensorFlow does for graphs and for tapes that are none.

    Its captures are those that it was traced with: nobody exchanges them later.

    Attributes:
        op: the same as one op; None where TensorFlow has to call it.
        results: how many tensors it returns.
        type: the structure of arguments and results.
        is_tensor: whether it returns just one tensor.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        function = trace._inference_function
        self._function, self.type = function, function.function_type
        self._captures = list(trace._captured_inputs)
        self.results = len(self.type.flat_outputs)
        self.is_tensor = isinstance(self.type.output, tf.TensorSpec)
        # Captures may be known at the call alone, and calls may wait for others.
        is_plain = all(type(one) is ops.EagerTensor for one in self._captures)
        waits = bool(function._call_options.control_captures)
        self._is_plain = is_plain and not waits and not any(map(_is_handle, self.type.flat_outputs))
        self.op = _AsOp.of(function, self._captures) if self._is_plain else None

    def __call__(self, flat: list[Any]) -> Any:
        """What the trace returns for these tensors, as TensorFlow calls it."""
        if not self._is_plain or record.could_possibly_record():
            return self._trace._call_flat(flat, self._trace.captured_inputs)
        with InterpolateRuntimeError(self._function):
            outputs = context.context().call_function(
                self._function.name, flat + self._captures, self.results
            )
        return self.type.pack_output(outputs)


class _AsOp:
    """A trace as one op. It changes nothing, so that what fails may be called again.

    Attributes:
        name: the op's.
        function: its first input, a tensor; with it the function is forgotten.
    """

    def __init__(self, name: str, function: Any, options: Any) -> None:
        self.name = name
        self.function = function
        self._options = options
        self._era = call.era()

    @classmethod
    def of(cls, function: Any, captures: list[Any]) -> _AsOp | None:
        """None where TensorFlow has to call the function."""
        compiled = function.cached_definition.attr.get("_XlaMustCompile")
        options = context.context().function_call_options
        if (
            not function.function_type.flat_outputs
            or (compiled is not None and compiled.b)
            or options.executor_type
            or call.is_deterministic()
        ):
            return None
        native.library()  # has the ops
        dtypes = [one.dtype.as_datatype_enum for one in captures]
        config = options.config_proto_serialized
        attrs = ("name", function.name, "config", config, "Tcaptures", dtypes)
        made, name, refusal = execute.execute(
            "CompositeDirectFunction", 3, captures, attrs, context.context()
        )
        return None if refusal.numpy() else cls(name.numpy().decode(), made, options)

    def is_current(self, here: Any) -> bool:
        """Whether a call may be one of the op. `here`: what the eager context has for a thread."""
        options = here.function_call_options
        return (
            (options is self._options or self._are_as_made(options))
            and call.era() is self._era
            and cancellation.context() is None
            and execute.execute is execute.quick_execute  # nobody looks at all ops
        )

    def _are_as_made(self, options: Any) -> bool:
        """Whether a thread runs functions as the one that made this; each has its own options."""
        if options is None:  # it has run none
            options = context.context().function_call_options
        return bool(options.as_attrs() == self._options.as_attrs())


def _is_handle(tensor: Any) -> bool:
    return tensor.dtype in _HANDLES


def _is_plain(here: Any) -> bool:
    """Whether a call is run at once, on no device and by no strategy that anybody names."""
    if not here.is_eager or here.device_name or _runs_eagerly():
        return False
    return not ops.get_default_graph()._distribution_strategy_stack


def _describe(args: Sequence[Any], flat: list[Any], kind: list[Any]) -> bool:
    """Appends the tensors of arguments, and what tells these apart from others.

    False if there is anything but eager tensors and arrays of numbers in lists, tuples, and dicts
    with names as keys.
    """
    for given in args:
        one = _as_tensor(given) if type(given) is np.ndarray else given
        if type(one) is ops.EagerTensor:
            flat.append(one)
            kind.append(one._datatype_enum())
            kind.append(one._shape_tuple())
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


def _as_tensor(array: Any) -> Any:
    """An array of numbers as an eager tensor, another one as it is."""
    if array.dtype.char not in _NUMBERS or not array.dtype.isnative:
        return array
    # A tensor may lie in the array's memory, and the caller write there: hence the copy.
    return ops.EagerTensor(array.copy(), device=None, dtype=None)
