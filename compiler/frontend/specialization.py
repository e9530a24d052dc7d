"""A cache of inlined library calls: an equal call gets the same ops without being translated.

The ops that a function of the library is translated to depend only on what is known of its
arguments: static types, constants, lengths of lists. Its text does not change, and all its ops have
the place of the call. So two calls with equal knowledge give the same ops, on different values.

Not for: the author's helpers, whose ops have places of their own.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

from composite.compiler.frontend import decisions
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.bindings import (
    Function,
    Instance,
    Method,
    OnePass,
    Outputs,
    Translation,
    values_in,
    with_values,
)
from composite.compiler.tfr import Builder, Place, Recipe, Recording, constants, dialect

# Calls that are remembered; each has a few kilobytes.
MOST = 1024

# The front end asks of the op that made a value what decisions.py asks, and whether it is one of:
_NAMED = ("tfr.raise", "tfr.list")


@dataclasses.dataclass(frozen=True)
class Specialization:
    """The ops of a call; `result` is its binding, with numbers in place of values."""

    recipe: Recipe
    result: Any
    inlined: int

    def build(self, builder: Builder, place: Place, call: Call) -> Any:
        """Build it for another call; returns the binding of the result."""
        return with_values(self.result, iter(self.recipe.build(builder, place, call.values)))


@dataclasses.dataclass(frozen=True)
class Call:
    """What is known of a call. Equal keys give equal ops on `values`, which has each value once."""

    key: Hashable
    values: list[Any]

    @classmethod
    def of(cls, caller: Translation, function: Function, bound: Mapping[str, Any]) -> Call | None:
        """Return what is known of a call; None if an argument cannot be compared.

        Args:
            caller: the translation of the function that calls.
            function: what is called.
            bound: the bindings of its parameters that are given.
        """
        if function.captured:
            return None
        known = _Known(caller.builder)
        try:
            arguments = [
                (name, known.of(binding))
                for name, binding in {**function.defaults, **bound}.items()
            ]
        except _UnequalError:
            return None
        return cls((function.body, caller.depth, caller.in_library, *arguments), known.values)

    def find(self) -> Specialization | None:
        """Return the ops of an equal call, if there was one."""
        if self.key not in _made:
            return None
        _made.move_to_end(self.key)
        return _made[self.key]

    def remember(
        self, builder: Builder, recording: Recording, place: Place, result: Any, inlined: int
    ) -> None:
        """Remember the ops of the call, if they can be built again.

        Args:
            builder: the builder.
            recording: what was built.
            place: that of its ops.
            result: the binding of the result.
            inlined: how many calls in it were inlined.
        """
        if isinstance(result, Function):
            return
        outputs = values_in(result)
        recipe = Recipe.of(builder, recording, place, self.values, outputs)
        if recipe is None:
            return
        template = with_values(result, iter(range(len(outputs))))
        _made[self.key] = Specialization(recipe, template, inlined)
        if len(_made) > MOST:
            _made.popitem(last=False)


# The last one used comes last. Guarded, as all of MLIR, by dialect.lock.
_made: collections.OrderedDict[Hashable, Specialization] = collections.OrderedDict()


def forget() -> None:
    """Empty the cache."""
    _made.clear()


class _UnequalError(Exception):
    """What is known of a binding cannot be compared: it is a function, or any object of Python."""


class _Known:
    """Describes what the front end can know of bindings, with numbers in place of values."""

    def __init__(self, builder: Builder) -> None:
        self.values: list[Any] = []
        self._builder = builder
        self._numbers: dict[Any, int] = {}
        self._bound: set[int] = set()

    def of(self, binding: Any) -> Hashable:
        """Return what is known of a binding."""
        if isinstance(binding, Static):
            return _constant(binding.object)
        if isinstance(binding, Function):
            raise _UnequalError
        if isinstance(binding, (Instance, Method, OnePass)):
            raise _UnequalError
        if isinstance(binding, Outputs):
            return (binding.names, binding.types, self._value(binding.value))
        return self._value(binding)

    def _value(self, value: Any) -> Hashable:
        number = self._number(value)
        if number in self._bound and self.values[number] is not value:
            raise _UnequalError  # the front end tells bindings apart by identity
        self.values[number] = value
        self._bound.add(number)
        type_, elements = dialect.name_of(value), self._builder.noted_elements(value)
        return (number, type_, elements, self._made(dialect.maker(value), value))

    def _number(self, value: Any) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]

    def _made(self, op: Any, value: Any) -> Hashable:
        """Return what is known from the op that made a value."""
        if op is None:
            return None
        name = op.name
        if name == "tfr.constant":
            number = decisions.static(value)
            # No translation depends on which float it is: decisions.py computes with ints alone.
            return ("float", bool(number)) if type(number) is float else op.attributes["value"]
        if name == "tfr.shape":  # of which the rank is asked
            return (name, self._number(op.operands[0]))
        if name in _NAMED:
            return (name, len(op.operands), "kind" in op.attributes)
        known = decisions.static(value)
        return None if known is decisions.ABSENT else (name, _constant(known))


def _constant(value: object) -> Hashable:
    """Return a key that is equal for identical constants only, which 1, 1.0 and True are not."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return (type(value), repr(value))
    if isinstance(value, tuple):
        return tuple(_constant(element) for element in value)
    if constants.is_dtype(value):
        return ("dtype", repr(value))
    raise _UnequalError
