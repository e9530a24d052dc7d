"""Eager calls past TensorFlow's eager runtime, which takes longer for a call than a small kernel.

What runs is made once, an op with its attributes or a function with its captures
(composite/runtime/direct), and called with eager tensors in C++ (composite/runtime/python), where
TensorFlow would do no more than run it: on CPUs, on no tape.

Not for: what else may be said of a call, and calls whose arguments have to be converted; TensorFlow
makes those.
"""

from __future__ import annotations

import collections
import ctypes
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.binding import native
from composite.ops import call, call_arguments, recorded

_FROM = 4  # calls of a kind: to make one takes as long as twenty calls by TensorFlow
_MOST = 16  # of an op: each call looks at them in turn
_PLAIN = frozenset({int, float, bool, str, bytes, type(None), tf.DType})


class Made(NamedTuple):
    """What direct calls run, as `OpCalls.add` and `FunctionCalls.add` take it."""

    address: int
    keep: Any  # it lives as long as this
    capsule: Any  # of the eager context that it is for


class RefusedError(ValueError):
    """Why an op or a function is not called directly."""


class OpCalls(NamedTuple):
    """The direct calls of one op (composite/runtime/python/op_calls.cc).

    Attributes:
        call: `(eager context, its data of this thread, *tensors, *attributes)` to what the op
            returns, a tensor or a tuple; to NotImplemented if nothing that was added serves such a
            call; to None if TensorFlow has to make it.
        add: `(made, attributes, recorded, fail)`: has calls with these attributes, values that
            never change, and tensors of the dtypes that were made for, be served so. `recorded`:
            the attributes as tapes record them. `fail`: raises the error of a code and a message;
            None: TensorFlow makes a call that fails again, and raises.
        close: calls that nothing serves give None from now on.
    """

    call: Callable[..., Any]
    add: Callable[..., None]
    close: Callable[[], None]

    @classmethod
    def new(cls, op_name: str, inputs: int, attrs: int) -> OpCalls:
        """None so far, of an op with so many tensors and attributes that are given."""
        counts = map(ctypes.c_ssize_t, (inputs, attrs))
        name = ctypes.py_object(op_name)
        return cls(*native.python_functions("composite_python_op_calls", name, *counts))


class FunctionCalls(NamedTuple):
    """The direct calls of one function (composite/runtime/python/function_calls.cc).

    Attributes:
        call: `(eager context, its data of this thread, arguments)` to the result; to NotImplemented
            where TensorFlow has to be asked.
        add: `(arguments, made, pack)`: has arguments of this structure, with tensors of these
            dtypes and shapes, be served so. `pack` makes the result of a list of tensors; None: it
            is the one tensor.
    """

    call: Callable[..., Any]
    add: Callable[..., None]

    @classmethod
    def new(cls, convert: Callable[[Any], Any]) -> FunctionCalls:
        """None so far. `convert` makes eager tensors of objects, and returns others as they are."""
        given = ctypes.py_object(convert)
        return cls(*native.python_functions("composite_python_function_calls", given))


def of_function(name: Any, config: bytes, captures: Sequence[Any]) -> Made:
    """A function that the eager runtime knows, with captures as its last arguments.

    `config`: a ConfigProto, for grappler. RefusedError where several threads share its work, where
    it changes something, and where there are other devices than one CPU.
    """
    dtypes = [one.dtype.as_datatype_enum for one in captures]
    attrs = ("name", name, "config", config, "Tcaptures", dtypes)
    return _made("CompositeDirectFunction", captures, attrs)


def of_op(op_name: str, attrs: Mapping[str, Any], inputs: int) -> Made:
    """An op with all of its attributes, and so many tensors as inputs.

    RefusedError where there are other devices than one CPU.
    """
    names = [f"x{i}" for i in range(inputs)]
    node = NodeDef(name=op_name, op=op_name, input=names, attr=attrs)
    return _made("CompositeDirectOp", (), ("node", node.SerializeToString()))


def _made(op_name: str, inputs: Sequence[Any], attrs: Sequence[Any]) -> Made:
    native.library()  # has the ops
    keep, address, refusal = call.eager_op(op_name, 3, inputs, attrs)
    if why := refusal.numpy():
        raise RefusedError(why.decode())
    return Made(int(address), keep, call.context_capsule())


def _serve(
    calls: OpCalls, definition: Any, attrs: Mapping[str, Any], inputs: int, given: tuple[Any, ...]
) -> None:
    """Has calls with all these attributes, some of them given, be direct; or no calls at all."""
    try:
        made = of_op(definition.name, attrs, inputs)
    except RefusedError:
        calls.close()
    else:
        calls.add(made, given, call.flat_attrs(definition, attrs), None)


class DirectOp:
    """The eager calls of one op. Thread-safe.

    Attributes:
        call: that of OpCalls; `learn` may be told of what it does not implement.
    """

    def __init__(self, definition: Any, inputs: Sequence[str], attrs: Sequence[str]) -> None:
        """An op whose inputs and outputs are tensors: see `serves`."""
        self._definition = definition
        self._inputs, self._attrs = tuple(inputs), tuple(attrs)
        self._calls = OpCalls.new(definition.name, len(inputs), len(attrs))
        self._met: collections.Counter[Hashable] = collections.Counter()
        self.call: Callable[..., Any] = self._calls.call

    @classmethod
    def serves(cls, definition: Any) -> bool:
        """Whether inputs and outputs of an op are tensors, and it may run twice where it fails."""
        args = [*definition.input_arg, *definition.output_arg]
        has_others = any(
            arg.number_attr or arg.type_list_attr or arg.type == tf.resource.as_datatype_enum
            for arg in args
        )
        return not (has_others or not definition.output_arg or definition.is_stateful)

    def learn(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> None:
        """Notes a call of eager tensors, and has later ones like it be direct."""
        if not {*map(type, attrs)} <= _PLAIN:
            return
        kind = (*(x.dtype for x in inputs), *map(recorded.value_key, attrs))
        self._met[kind] += 1
        if len(self._met) > _MOST:
            self._calls.close()
        elif self._met[kind] == _FROM:
            self._make(inputs, attrs)

    def _make(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> None:
        arguments = dict(zip((*self._inputs, *self._attrs), (*inputs, *attrs), strict=True))
        try:
            bound = call_arguments.bind(self._definition, arguments)
        except (TypeError, ValueError):
            return  # the op itself says what is wrong
        _serve(self._calls, self._definition, bound.attrs, len(inputs), tuple(attrs))


class FixedOp:
    """The eager calls of an op on so many tensors of the same dtypes, with the same attributes.

    Thread-safe.
    """

    def __init__(
        self, definition: Any, inputs: int, arguments: Callable[[Sequence[Any]], Mapping[str, Any]]
    ) -> None:
        """`arguments`: the op's, attributes included, of a call of these tensors."""
        self._definition, self._arguments = definition, arguments
        self._calls = OpCalls.new(definition.name, inputs, 0)
        self._left = _FROM

    def __call__(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The outputs of a call of eager tensors; None where TensorFlow has to make it."""
        outputs = self._calls.call(*call.eager_state(), *inputs)
        if outputs is NotImplemented:
            self._left -= 1
            if self._left == 0:
                self._make(inputs)
            return None
        if outputs is None:
            return None
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    def _make(self, inputs: Sequence[Any]) -> None:
        bound = call_arguments.bind(self._definition, self._arguments(inputs))
        _serve(self._calls, self._definition, bound.attrs, len(inputs), ())
