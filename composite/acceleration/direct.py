"""Calls of a tf.function without the search for the trace that serves them.

At each call a tf.function describes all of its arguments to find that trace, which takes longer
than a small model runs. Here eager tensors and NumPy's arrays, also in lists, tuples and dicts, are
told apart by dtypes and shapes alone; and where no tape is recording, nothing is done for tapes.

TensorFlow hands a function over to other threads, and takes each variable as one more argument. A
trace that several threads could not share runs on the thread of its caller, which reads the
variables by itself (composite/ops/direct.py).

Written against private APIs of TF 2.21; tests/composite/acceleration/test_direct.py pins them.

Not for: other arguments, other ways to run a function (graphs, devices, strategies), for which the
tf.function is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import cancellation, context, record
from tensorflow.python.eager.polymorphic_function.atomic_function import InterpolateRuntimeError
from tensorflow.python.framework import ops

from composite.ops import call, direct

_MOST_TRACES = 64
_runs_eagerly = tf.config.functions_run_eagerly
# What TensorFlow tells such tensors apart by is more than a dtype and a shape.
_HANDLES = frozenset({tf.resource, tf.variant})
_NUMBERS = frozenset("?bBhHiIlLqQefdFD")  # by NumPy's codes


class _Process:
    """What this process has of TensorFlow."""

    def __init__(self) -> None:
        self.is_without_threads = False

    def in_child(self) -> None:
        """Called in a process that was just forked."""
        self.is_without_threads |= call.tensorflow_has_started()


_process = _Process()
os.register_at_fork(after_in_child=_process.in_child)


class DirectCalls:
    """A tf.function whose traces are found faster; called as it is. Thread-safe.

    Attributes:
        function: the tf.function.
    """

    def __init__(self, function: Any, original: Callable[..., Any] | None = None) -> None:
        """`function` makes no variables when it is called.

        `original`: what it was traced from, which is called where TensorFlow runs no tf.functions.
        """
        self.function = function
        self._original = function if original is None else original
        self._traces: dict[tuple[Any, ...], _Trace] = {}
        self._direct = _Direct()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the tf.function returns for these arguments."""
        eager = context.context()
        here = eager._thread_local_data
        if _process.is_without_threads:
            return self._without_threads(here, args, kwargs)
        if kwargs or not _is_plain(here):
            return self.function(*args, **kwargs)
        if self._direct.is_current(here):
            result = self._direct.call(eager, here, args)
            if result is not NotImplemented:
                return result
        flat: list[Any] = []
        kind: list[Any] = []
        if not _describe(args, flat, kind):
            return self.function(*args)
        trace = self._traces.get(tuple(kind))
        return trace(flat) if trace is not None else self._trace(args, flat, tuple(kind))

    def _without_threads(self, here: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the tf.function would return, in a forked child.

        TensorFlow's executor would wait there for threads that the parent alone has. A direct call
        needs none of them, nor do eager ops that are too small for several threads.
        """
        if not kwargs and _is_plain(here) and self._direct.is_current(here):
            result = self._direct.call(context.context(), here, args)
            if result is not NotImplemented:
                return result
        return self._original(*args, **kwargs)

    def _trace(self, args: tuple[Any, ...], flat: list[Any], key: tuple[Any, ...]) -> Any:
        """The first call of a kind, which is remembered."""
        result = self.function(*args)
        self._add(args, flat, key)
        return result

    def learn(self, *args: Any) -> None:
        """Has calls of arguments like these be direct from the first one on.

        TensorFlow makes and optimizes the function that it runs at its own first call. Here that is
        done for direct calls alone.
        """
        flat: list[Any] = []
        kind: list[Any] = []
        is_plain = _is_plain(context.context()._thread_local_data)
        if is_plain and not _process.is_without_threads and _describe(args, flat, kind):
            self._add(args, flat, tuple(kind))

    def _add(self, args: tuple[Any, ...], flat: list[Any], key: tuple[Any, ...]) -> None:
        """Remembers the trace of such arguments."""
        if len(self._traces) >= _MOST_TRACES or any(map(_is_handle, flat)):
            return
        trace = _Trace(self.function.get_concrete_function(*args))
        here = context.context()._thread_local_data
        if not self._direct.is_current(here):
            self._direct = _Direct()
        self._direct.add(args, trace)
        self._traces[key] = trace


class _Trace:
    """A trace, called without what TensorFlow does for graphs and for tapes that are none.

    Its captures are those that it was traced with: nobody exchanges them later.

    Attributes:
        function: TensorFlow's AtomicFunction.
        captures: its last arguments.
        is_plain: whether they are all there, and the results are tensors of numbers.
        type: the structure of arguments and results.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        self.function = trace._inference_function
        self.type = self.function.function_type
        self.captures = list(trace._captured_inputs)
        # Captures may be known at the call alone, and calls may wait for others.
        are_there = all(type(one) is ops.EagerTensor for one in self.captures)
        waits = bool(self.function._call_options.control_captures)
        handles = any(map(_is_handle, self.type.flat_outputs))
        self.is_plain = are_there and not waits and not handles

    def __call__(self, flat: list[Any]) -> Any:
        """What the trace returns for these tensors, as TensorFlow calls it."""
        if not self.is_plain or record.could_possibly_record():
            return self._trace._call_flat(flat, self._trace.captured_inputs)
        with InterpolateRuntimeError(self.function):
            outputs = context.context().call_function(
                self.function.name, flat + self.captures, len(self.type.flat_outputs)
            )
        return self.type.pack_output(outputs)


class _Direct:
    """The traces that run on the thread of their caller, past TensorFlow's eager runtime.

    Attributes:
        call: `(eager context, its data of this thread, arguments)` to the result; NotImplemented
            where TensorFlow has to call the trace.
    """

    def __init__(self) -> None:
        self._calls = direct.FunctionCalls.new(_as_tensor)
        self._options = context.context().function_call_options
        self._epoch = call.kernel_cache_epoch()
        self.call: Callable[..., Any] = self._calls.call

    def add(self, args: tuple[Any, ...], trace: _Trace) -> None:
        """Has a trace serve arguments like these, unless TensorFlow has to call it.

        It changes nothing, so that what fails may be called again.
        """
        function = trace.function
        compiled = function.cached_definition.attr.get("_XlaMustCompile")
        if (
            not trace.is_plain
            or not trace.type.flat_outputs
            or (compiled is not None and compiled.b)
            or self._options.executor_type
            or call.is_deterministic()
        ):
            return
        config = self._options.config_proto_serialized
        try:
            made = direct.of_function(function.name, config, trace.captures)
        except direct.RefusedError:
            return
        is_tensor = isinstance(trace.type.output, tf.TensorSpec)
        self._calls.add(args, made, None if is_tensor else trace.type.pack_output)

    def is_current(self, here: Any) -> bool:
        """Whether calls may be made so. `here`: what the eager context has for a thread."""
        options = here.function_call_options
        return (
            (options is self._options or self._are_as_made(options))
            and call.kernel_cache_epoch() is self._epoch
            and cancellation.context() is None
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
        one = _as_tensor(given)
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
    """An array of numbers as an eager tensor, anything else as it is."""
    if type(array) is not np.ndarray or array.dtype.char not in _NUMBERS:
        return array
    if not array.dtype.isnative:
        return array
    # A tensor may lie in the array's memory, and the caller write there: hence the copy.
    return ops.EagerTensor(array.copy(), device=None, dtype=None)
