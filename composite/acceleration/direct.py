"""Calls of a tf.function without the search for the trace that serves them.

At each call a tf.function describes all of its arguments to find that trace, which takes longer
than a small model runs. Here eager tensors, also in lists, tuples and dicts, are told apart by
dtypes and shapes alone; and where no tape is recording, nothing is done for tapes.

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
        if len(self._traces) < _MOST_TRACES and _HANDLES.isdisjoint(_dtypes(flat)):
            self._traces[key] = _Trace(self.function.get_concrete_function(*args), flat)
        return result


class _Trace:
    """A trace, called without what TensorFlow does for graphs and for tapes that are none.

    Its captures are those that it was traced with: nobody exchanges them later.
    """

    def __init__(self, trace: Any, flat: list[Any]) -> None:
        """`flat`: the tensors of a call."""
        self._trace = trace
        function = trace._inference_function
        self._function, self._type = function, function.function_type
        self._captures = list(trace._captured_inputs)
        self._results = len(self._type.flat_outputs)
        self._is_tensor = isinstance(self._type.output, tf.TensorSpec)
        # Captures may be known at the call alone, and calls may wait for others.
        is_plain = all(type(one) is ops.EagerTensor for one in self._captures)
        handles = (one.dtype.as_datatype_enum in _HANDLES for one in self._type.flat_outputs)
        waits = bool(function._call_options.control_captures)
        self._is_plain = is_plain and not waits and not any(handles)
        self._as_op = _AsOp.of(function, self._captures, flat) if self._is_plain else None

    def __call__(self, flat: list[Any]) -> Any:
        """What the trace returns for these tensors."""
        if not self._is_plain or record.could_possibly_record():
            return self._trace._call_flat(flat, self._trace.captured_inputs)
        outputs = self._as_op(flat) if self._as_op is not None else None
        if outputs is None:
            with InterpolateRuntimeError(self._function):
                outputs = context.context().call_function(
                    self._function.name, flat + self._captures, self._results
                )
        return outputs[0] if self._is_tensor else self._type.pack_output(outputs)


class _AsOp:
    """A trace as one op. It changes nothing, so that what fails may be called again."""

    def __init__(self, made: Any, options: Any, attrs: tuple[Any, ...], results: int) -> None:
        self._made = made  # a tensor, with which the function is forgotten
        self._options = options
        self._era = call.era()
        self._attrs = attrs
        self._results = results

    @classmethod
    def of(cls, function: Any, captures: list[Any], flat: list[Any]) -> _AsOp | None:
        """None where TensorFlow has to call the function."""
        outputs = function.function_type.flat_outputs
        compiled = function.cached_definition.attr.get("_XlaMustCompile")
        if not outputs or (compiled is not None and compiled.b) or call.is_deterministic():
            return None
        native.library()  # has the ops
        options = context.context().function_call_options
        if options.executor_type:
            return None
        config = options.config_proto_serialized
        attrs = ("name", function.name, "config", config, "Tcaptures", _dtypes(captures))
        made, refusal = execute.execute(
            "CompositeDirectFunction", 2, captures, attrs, context.context()
        )
        if refusal.numpy():
            return None
        dtypes = ("Tin", _dtypes(flat), "Tout", _dtypes(outputs))
        return cls(made, options, dtypes, len(outputs))

    def __call__(self, flat: list[Any]) -> Any:
        """The results; None where TensorFlow has to make this call, or says better why it fails."""
        eager = context.context()
        options = eager._thread_local_data.function_call_options
        if (
            (options is not self._options and not self._are_as_made(options))
            or call.era() is not self._era
            or cancellation.context() is not None
            or execute.execute is not execute.quick_execute  # somebody looks at all ops
        ):
            return None
        try:
            return pywrap_tfe.TFE_Py_Execute(
                eager._handle,
                None,
                "CompositeDirectCall",
                [self._made, *flat],
                self._attrs,
                self._results,
            )
        except core._NotOkStatusException:
            return None

    def _are_as_made(self, options: Any) -> bool:
        """Whether a thread runs functions as the one that made this; each has its own options."""
        if options is None:  # it has run none
            options = context.context().function_call_options
        return bool(options.as_attrs() == self._options.as_attrs())


def _dtypes(values: Sequence[Any]) -> list[int]:
    return [one.dtype.as_datatype_enum for one in values]


def _is_plain() -> bool:
    """Whether a call here is run at once, on no device and by no strategy that anybody names."""
    here = context.context()._thread_local_data
    if not here.is_eager or here.device_name or _runs_eagerly():
        return False
    return not ops.get_default_graph()._distribution_strategy_stack


def _describe(args: Sequence[Any], flat: list[Any], kind: list[Any]) -> bool:
    """Appends the tensors of arguments, and what tells these apart from others.

    False if there is anything but eager tensors in lists, tuples, and dicts with names as keys.
    """
    for one in args:
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
