"""What a name of a body can be bound to while it is translated.

- a value of the IR (an MLIR SSA value);
- `Outputs`: the list that an op with several outputs gives, with the outputs' names;
- `Static`: an object known at compile time, which becomes a constant where a value is needed;
- `Function`: a function that is known at compile time, and is translated where it is called;
- `Instance`: an object of a class of TensorFlow, whose methods are functions of the library;
- `Method`: one of these with its object;
- `OnePass`: what enumerate(), zip() and reversed() give, which one pass uses up.

Not for: how expressions make them (expressions.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from composite.compiler import library
from composite.compiler.errors.calls import ONE_PASS
from composite.compiler.errors.names import FUNCTION_VALUE, NO_CONSTANT, OBJECT_VALUE
from composite.compiler.frontend.analysis import capture, uses
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.body import Body
from composite.compiler.frontend.recovery import Mistakes, UnknownError
from composite.compiler.source import Source
from composite.compiler.tfr import Builder, NotConstantError, Place
from composite.compiler.tfr.canonicalize import ABSENT, constant_of


@dataclasses.dataclass(frozen=True)
class Outputs:
    """The results of an op with several outputs; `types` are the names of their static types."""

    value: Any
    names: tuple[str, ...]
    types: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Function:
    """A Python function that is inlined where it is called.

    Attributes:
        body: its text.
        captured: the bindings of the names that it reads from the enclosing body.
        defaults: the bindings of its default arguments, by parameter.
    """

    body: Body
    captured: dict[str, Any]
    defaults: dict[str, Any]

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Yield the bindings that it holds, except itself: a recursive function captures itself."""
        for name, binding in (*self.captured.items(), *self.defaults.items()):
            if binding is not self:
                yield name, binding


@dataclasses.dataclass(frozen=True)
class Instance:
    """An object of a TensorFlow class, such as tf.TensorArray; methods take it as `[value, fixed]`.

    Attributes:
        value: a tensor; a method that changes the object returns a new one.
        fixed: a list of everything else, which no method changes.
        class_: the class.
    """

    value: Any
    fixed: Any
    class_: type

    @property
    def spelling(self) -> str:
        """The public name of its class."""
        return f"tf.{self.class_.__name__}"


@dataclasses.dataclass(frozen=True)
class Method:
    """A bound method: a function of the library and the object that it is called on."""

    function: Static
    owner: Instance


@dataclasses.dataclass(frozen=True)
class OnePass:
    """An iterator of Python: the list of its items, for the one use that it may have.

    Attributes:
        value: the list.
        function: what has made it, "zip".
    """

    value: Any
    function: str


def function_name(binding: Any) -> str:
    """Return the name that the source has for a binding that is a function, else ""."""
    if isinstance(binding, Function):
        return binding.body.name
    if isinstance(binding, Method):
        return binding.function.spelling
    if isinstance(binding, Static) and callable(binding.object):
        return "" if isinstance(binding.object, type) else binding.spelling
    return ""


def is_value(binding: Any) -> bool:
    """Say whether a binding is a value of the IR as it is."""
    return not isinstance(binding, (Static, Outputs, Function, Instance, Method, OnePass))


def values_in(binding: Any) -> list[Any]:
    """Return the values of the IR that a binding holds."""
    if isinstance(binding, Static):
        return []
    if isinstance(binding, (Outputs, OnePass)):
        return [binding.value]
    if isinstance(binding, Instance):
        return [binding.value, binding.fixed]
    if isinstance(binding, Method):
        return values_in(binding.owner)
    if isinstance(binding, Function):
        return [value for _, part in binding.parts() for value in values_in(part)]
    return [binding]


def with_values(binding: Any, values: Iterator[Any]) -> Any:
    """Return a binding with its values replaced by others, in the order of `values_in`."""
    if isinstance(binding, Static):
        return binding
    if isinstance(binding, (Outputs, OnePass)):
        return dataclasses.replace(binding, value=next(values))
    if isinstance(binding, Instance):
        return dataclasses.replace(binding, value=next(values), fixed=next(values))
    if isinstance(binding, Method):
        return dataclasses.replace(binding, owner=with_values(binding.owner, values))
    if not isinstance(binding, Function):
        return next(values)
    parts = {name: with_values(part, values) for name, part in binding.parts()}
    made = Function(
        binding.body,
        {name: parts[name] for name in binding.captured if name in parts},
        {name: parts[name] for name in binding.defaults},
    )
    made.captured.update(dict.fromkeys(binding.captured.keys() - parts.keys(), made))
    return made


@dataclasses.dataclass(frozen=True)
class Caller:
    """The call at which a function is inlined.

    `in_library`: the function belongs to the library, so its lines are not the author's.
    """

    translation: Translation
    place: Place
    in_library: bool


@dataclasses.dataclass
class Translation:
    """The translation of one function: its text, the builder, the bindings at this point.

    `mistakes` are those that were found in it so far.
    """

    body: Body
    builder: Builder
    environment: dict[str, Any]
    caller: Caller | None = None
    mistakes: Mistakes = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.mistakes = self.body.scopes.mistakes.later()

    @property
    def source(self) -> Source:
        """The text."""
        return self.body.source

    @property
    def in_library(self) -> bool:
        """Whether the function is one of the library's."""
        return self.caller is not None and self.caller.in_library

    @property
    def depth(self) -> int:
        """How many calls this one is nested in."""
        return 0 if self.caller is None else self.caller.translation.depth + 1

    def place(self, node: Any) -> Place:
        """Return the location of a node; in the library, that of the author's call."""
        if self.caller is not None and self.caller.in_library:
            return self.caller.place
        outer = None if self.caller is None else self.caller.place
        return Place(self.source.file, *self.source.position(node), caller=outer)

    def local(self, name: str) -> Any:
        """Return the binding of a name of the body.

        Raises:
            UnknownError: if it has none because of a mistake that is noted already.
        """
        if name in self.mistakes.unknown or (self.mistakes and name not in self.environment):
            raise UnknownError
        return self.environment[name]

    def read(self, name: str, node: Any) -> Any:
        """Return the binding of a name that is read at `node`.

        Raises:
            CompositeSyntaxError: if it is an iterator that is read elsewhere, or again in a loop.
        """
        binding = self.local(name)
        if isinstance(binding, OnePass) and not uses.once(self.source.tree, name):
            message = f"`{name}` is read more than once: {_only_iterated(binding)}"
            self.source.fail(node, ONE_PASS, message)
        return binding

    def value(self, binding: Any, node: Any) -> Any:
        """Return a binding as a value of the IR, building a constant for a static object."""
        if isinstance(binding, Outputs):
            return binding.value
        if function := function_name(binding):
            self.source.fail(
                node, FUNCTION_VALUE, f"`{function}` is a function here: call it where it is needed"
            )
        if isinstance(binding, Instance):
            self.source.fail(node, OBJECT_VALUE, _no_value(binding))
        if isinstance(binding, OnePass):
            self.source.fail(node, ONE_PASS, _only_iterated(binding))
        if not isinstance(binding, Static):
            return binding
        try:
            return self._constant(capture.constant(binding.object))
        except NotConstantError as error:
            self.source.fail(node, NO_CONSTANT, f"`{binding.spelling}`: {error}")

    def iterated(self, binding: Any, node: Any) -> Any:
        """Return the value whose items a loop, a call or an assignment goes through."""
        return binding.value if isinstance(binding, OnePass) else self.value(binding, node)

    def carried(self, binding: Any, node: Any) -> Any:
        """Return the value that a loop carries for a binding; `like` is the inverse."""
        return binding.value if isinstance(binding, Instance) else self.value(binding, node)

    def whole(self, binding: Any, node: Any) -> Any:
        """Return one value that holds all of a binding; `from_whole` is the inverse."""
        if isinstance(binding, Instance):
            return self.builder.make_list([binding.value, binding.fixed])
        return self.value(binding, node)

    def from_whole(self, value: Any, class_: type | None) -> Any:
        """Return the binding that `whole` made a value of: an object where `class_` is given."""
        if class_ is None:
            return value
        value, fixed = self.builder.unpack(self.builder.cast(value, "sequence"), 2)
        return Instance(
            self.builder.cast(value, "tensor"), self.builder.cast(fixed, "sequence"), class_
        )

    def same_class(self, name: str, first: Any, second: Any, node: Any) -> None:
        """Refuse a name that is an object on one path, or before a loop, and not on another."""
        objects = [one for one in (first, second) if isinstance(one, Instance)]
        if len(objects) == 1 and name not in self.mistakes.unknown:
            self.source.fail(
                node,
                OBJECT_VALUE,
                f"`{name}` is a {objects[0].spelling} on one path or in one trip and not on "
                "another: give it another name, or make it one on all",
            )

    def _constant(self, value: object) -> Any:
        if isinstance(value, tuple):
            return self.builder.make_tuple([self._constant(element) for element in value])
        return self.builder.constant(value)


def known(binding: Any) -> Any:
    """Return the Python constant that a binding is known to be, ABSENT if it is not."""
    if isinstance(binding, Static):
        return binding.object
    return constant_of(binding) if is_value(binding) else ABSENT


def class_of(binding: Any) -> type | None:
    """Return the class of a binding that is an object, else None."""
    return binding.class_ if isinstance(binding, Instance) else None


def like(value: Any, binding: Any) -> Any:
    """Return a binding of the same kind as another, with this value."""
    return dataclasses.replace(binding, value=value) if isinstance(binding, Instance) else value


def _only_iterated(binding: OnePass) -> str:
    return (
        f"{binding.function}() gives an iterator, which one pass uses up: go through it once, in a "
        f"`for`, list() or the like, or write `list({binding.function}(...))`"
    )


def _no_value(binding: Instance) -> str:
    names = ", ".join(f".{name}()" for name in library.methods(binding.class_))
    return f"this is a {binding.spelling}, which is used by its methods alone: {names}"
