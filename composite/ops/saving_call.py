"""Eager calls that save what their gradients need.

In a traced step a graph pass puts a saving forward in the place of a node (saving_forward.h). An
eager call is over when its gradient is asked for. So it is learned from the gradients of equal
calls before: autodiff tells which forward saves what they need (`learn`), the next call on a tape
runs that one, and what is saved stays in the tape's record, for the gradient function.

Not for: what is worth saving (composite/autodiff), and calls whose gradients have gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding import settings
from composite.ops import call, call_arguments, recorded

_MOST = 1024  # sets of attributes, and calls, of an op


# A version, its attributes as they are given, the lengths of lists, dtypes and shapes of inputs.
_Key = tuple[str, tuple[Hashable, ...], tuple[int, ...], tuple[recorded.Kind, ...]]


class SavingForward(NamedTuple):
    """The forward of an op that also gives what its gradient needs."""

    run: Callable[[Sequence[Any]], list[Any]]  # the inputs, flat, to the outputs and what is saved
    outputs: int  # how many of its results are the op's
    attrs: tuple[Any, ...]  # of the op, as a tape records them
    gradient: Any  # what its gradient function gets back, see recorded.Saved


class SavingCalls:
    """The eager calls of one op that are made by saving forwards.

    Attributes:
        learned: empty as long as there are none, which is all that other calls ask.
    """

    def __init__(self, definition: Any) -> None:
        self.learned: dict[Hashable, SavingForward] = {}
        self._definition = definition
        self._inputs = [arg.name for arg in definition.input_arg]
        derived = call_arguments.inferred(definition)
        self._attrs = [attr.name for attr in definition.attr if attr.name not in derived]
        # By what is given: attributes, and dtypes and shapes of inputs. None: it saves nothing.
        self._known: dict[Hashable, SavingForward | None] = {}

    def learn(self, digest: str, op: Any, forward: SavingForward) -> None:
        """Has calls like the one that a tape recorded as `op` be made by a saving forward."""
        if len(self.learned) >= _MOST:
            self.learned.clear()
        shapes = tuple(map(recorded.shape_of, op.inputs))
        self.learned[digest, _frozen(recorded.attrs_of(op)), shapes] = forward
        self._known.clear()

    def __call__(self, digest: str, arguments: Mapping[str, Any]) -> list[Any] | None:
        """The outputs of a call of a version; None where it has to be made without saving.

        Call it only where a tape may record.
        """
        tensors, lengths = self._flat(arguments)
        if tensors is None:
            return None
        given = tuple([recorded.value_key(arguments[name]) for name in self._attrs])
        kinds = tuple([recorded.kind_of(x) for x in tensors])
        key = (digest, given, lengths, kinds)
        forward = self._known.get(key) if key in self._known else self._find(key, arguments)
        if forward is None or settings.insists() or settings.calls_are_strict():
            return None
        if not call.has_first_gradients(tensors):
            return None
        try:
            values = call.unrecorded(forward.run, tensors)
        except tf.errors.OpError:
            return None  # the op itself says what is wrong, under its own name
        outputs = values[: forward.outputs]
        saved = recorded.Saved(forward.gradient, values[forward.outputs :])
        attrs = (*forward.attrs, recorded.SAVED, saved)
        call.record_call(self._definition.name, tensors, attrs, outputs)
        return outputs

    def _flat(self, arguments: Mapping[str, Any]) -> tuple[list[Any] | None, tuple[int, ...]]:
        """The inputs as tensors, and the lengths of lists; None if they have to be converted."""
        tensors = [arguments[name] for name in self._inputs]
        if call.are_eager_tensors(tensors):
            return tensors, ()
        values, tensors = tensors, []
        lengths = []
        for value in values:
            if isinstance(value, (list, tuple)):
                lengths.append(len(value))
                tensors += value
            else:
                tensors.append(value)
        if not call.are_eager_tensors(tensors):
            tensors = [*map(call_arguments.read, tensors)]
            if not call.are_eager_tensors(tensors):
                return None, ()
        return tensors, tuple(lengths)

    def _find(self, key: _Key, arguments: Mapping[str, Any]) -> SavingForward | None:
        """The forward that saves for a call; None for none, or if its attributes are no good."""
        try:
            bound = call_arguments.bind(self._definition, arguments)
        except (TypeError, ValueError):
            return None  # the op itself says what is wrong
        digest, _, _, kinds = key
        if len(self._known) >= _MOST:
            self._known.clear()
        attrs, shapes = _frozen(bound.attrs), tuple(shape for _, shape in kinds)
        forward = self._known[key] = self.learned.get((digest, attrs, shapes))
        return forward


def _frozen(attrs: Mapping[str, Any]) -> Hashable:
    return tuple((one, attrs[one].SerializeToString(deterministic=True)) for one in sorted(attrs))


_calls: dict[str, SavingCalls] = {}


def made_for(definition: Any) -> SavingCalls:
    """The saving calls of an op, whose eager calls ask it from now on."""
    return _calls.setdefault(definition.name, SavingCalls(definition))


def of(op_name: str) -> SavingCalls | None:
    """The saving calls of an op; None if its eager calls ask none."""
    return _calls.get(op_name)
