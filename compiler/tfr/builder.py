"""Builds TFR: one method an op, the result's static type derived from the operands'.

A Builder has an insertion point and the location of the line being translated; both are context
managers, so that what a block is given, and where it comes from, is seen at the call.

Not for: what Python means (the frontend), rewriting (canonicalize.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from composite.compiler.tfr import constants, dialect
from composite.compiler.tfr.bindings import ir
from composite.compiler.tfr.fork import Fork
from composite.compiler.tfr.loop import Loop
from composite.compiler.tfr.recipe import Recording

# Comparisons whose answer is one bool, whatever their operands are.
_ONE_ANSWER = frozenset({"is", "is_not", "in", "not_in"})


@dataclasses.dataclass(frozen=True)
class Place:
    """A point of the user's source: file relative to the module's root, 1-based line and column.

    `caller` is where the function that it stands in was called, if that was inlined; `within` names
    a function of the library whose ops are given the place of its call.
    """

    file: str
    line: int
    column: int
    caller: Place | None = None
    within: str = ""


@dataclasses.dataclass(frozen=True)
class Call:
    """What a tfr.call says beside its operands."""

    op: str
    keywords: tuple[str, ...]
    stateful: bool
    result: str  # name of the result's type
    program: str = ""  # digest, when the callee is a composite
    name: str = ""  # the `name=` the author gave


def arithmetic_type(left: str, right: str) -> str:
    """Name the type of an operator's result: a tensor absorbs numbers."""
    if "tensor" in (left, right):
        return "tensor"
    return left if left == right and left in ("attr", "sequence") else "any"


class _Scope:
    """Sets an attribute of a builder for a `with`; entered for every node of a source, so plain."""

    __slots__ = ("_builder", "_inner", "_name", "_outer")

    def __init__(self, builder: Builder, name: str, inner: Any) -> None:
        self._builder = builder
        self._name = name
        self._inner = inner

    def __enter__(self) -> None:
        self._outer = getattr(self._builder, self._name)
        setattr(self._builder, self._name, self._inner)

    def __exit__(self, *_: object) -> None:
        setattr(self._builder, self._name, self._outer)


class Builder:
    """Appends ops to a module. Use it under `dialect.lock` and `with builder.context`."""

    def __init__(self) -> None:
        self.context = dialect.context()
        self._unknown = ir.Location.unknown(self.context)
        self._place: Place | None = None
        self.module = ir.Module.create(self._unknown)
        self._point = ir.InsertionPoint(self.module.body)
        self._elements: dict[Any, str] = {}
        self._locations: dict[Place, Any] = {}
        self._located: tuple[Place | None, Any] = (None, self._unknown)
        self._open: list[Fork | Loop] = []
        self._recordings: list[Recording] = []

    def at(self, place: Place | None) -> _Scope:
        """Give the ops built inside this location."""
        return _Scope(self, "_place", place)

    @property
    def place(self) -> Place | None:
        """The location that is given to ops."""
        return self._place

    def locate(self, place: Place | None) -> Any:
        """Return a location as MLIR has it."""
        if place is self._located[0]:  # that of the op before, most often
            return self._located[1]
        location = self._unknown if place is None else self._location(place)
        self._located = (place, location)
        return location

    def _location(self, place: Place) -> Any:
        if place not in self._locations:
            location = ir.Location.file(place.file, place.line, place.column, self.context)
            if place.caller is not None:
                location = ir.Location.callsite(
                    location, [self._location(place.caller)], self.context
                )
            if place.within:
                location = ir.Location.name(place.within, location, self.context)
            self._locations[place] = location
        return self._locations[place]

    def into(self, block: Any) -> _Scope:
        """Append the ops built inside to this block."""
        return _Scope(self, "_point", ir.InsertionPoint(block))

    def op(
        self,
        name: str,
        operands: Sequence[Any] = (),
        results: Sequence[Any] = (),
        /,
        regions: int = 0,
        attached: bool = True,
        **attributes: Any,
    ) -> Any:
        """Build any op here, or one that stands nowhere yet (not `attached`)."""
        operands, results, location = list(operands), list(results), self.locate(self._place)
        if attached:
            return self.append(name, operands, results, attributes, regions, location)
        return ir.Operation.create(
            name, results, operands, attributes, regions=regions, loc=location, ip=False
        )

    def append(  # noqa: PLR0913, PLR0917 - an op has that many parts
        self,
        name: str,
        operands: list[Any],
        results: list[Any],
        attributes: dict[str, Any],
        regions: int,
        location: Any,
    ) -> Any:
        """Build an op of these parts here, at an MLIR location: what `op` does, and a recipe."""
        made = ir.Operation.create(
            name, results, operands, attributes, regions=regions, loc=location, ip=self._point
        )
        self._record(made)
        return made

    def _record(self, op: Any) -> None:
        for recording in self._recordings:
            recording.note(op, self._point)

    @contextlib.contextmanager
    def recording(self) -> Iterator[Recording]:
        """Record the ops that are appended here inside the `with`."""
        recording = Recording(self._point)
        self._recordings.append(recording)
        try:
            yield recording
        finally:
            self._recordings.remove(recording)

    def _value(self, name: str, operands: Sequence[Any], type_: str, /, **attributes: Any) -> Any:
        return self.op(name, operands, [dialect.type_of(type_)], **attributes).results[0]

    def _string(self, text: str) -> Any:
        return ir.StringAttr.get(text, self.context)

    def constant(self, value: object) -> Any:
        """Build a constant; raises constants.NotConstantError."""
        attribute = constants.to_attribute(value)
        return self._value("tfr.constant", (), constants.result_type(attribute), value=attribute)

    def cast(self, value: Any, type_: str) -> Any:
        """Give a value another static type; the value itself if it has it already."""
        if dialect.name_of(value) == type_:
            return value
        return self._value("tfr.cast", [value], type_)

    def element_type(self, value: Any) -> str:
        """Name the type of the elements of a list, as far as it is known where the list is made."""
        dims = dialect.name_of(value) in ("dims", "attr")
        return "attr" if dims else self.noted_elements(value)

    def noted_elements(self, value: Any) -> str:
        """Name what was noted of the elements of a value: "any" for nothing."""
        return self._elements.get(value, "any")

    def note_elements(self, value: Any, type_: str) -> None:
        """Remember the type of the elements of a list."""
        self._elements[value] = type_

    def make_list(self, elements: Sequence[Any]) -> Any:
        """Build a list or tuple of values."""
        types = list(dict.fromkeys(dialect.name_of(element) for element in elements))
        made = self._value("tfr.list", self._alike(elements), "sequence")
        self.note_elements(made, types[0] if len(types) == 1 else "any")
        return made

    def _alike(self, values: Sequence[Any]) -> Sequence[Any]:
        """Give values one type, for the operands of a variadic."""
        if len({dialect.name_of(value) for value in values}) <= 1:
            return values
        return [self.cast(value, "any") for value in values]

    def item(self, value: Any, index: Any, type_: str | None = None) -> Any:
        """Index a list, shape or string; `type_` says more than is known of the list."""
        return self._value("tfr.item", [value, index], type_ or self.element_type(value))

    def subscript(self, value: Any, spec: str, parts: Sequence[Any]) -> Any:
        """Index or slice any value; see the dialect for `spec`."""
        type_ = dialect.name_of(value)
        result = "sequence" if type_ == "dims" else type_
        made = self._value(
            "tfr.subscript", [value, *self._alike(parts)], result, spec=self._string(spec)
        )
        self.note_elements(made, self.element_type(value))
        return made

    def builtin(self, function: str, arguments: Sequence[Any]) -> Any:
        """Call a function of Python that makes a list."""
        made = self._value(
            "tfr.builtin", self._alike(arguments), "sequence", function=self._string(function)
        )
        if function == "range":
            self.note_elements(made, "attr")
        elif function in ("enumerate", "zip"):
            self.note_elements(made, "sequence")
        elif arguments:
            tensor = dialect.name_of(arguments[0]) == "tensor"
            self.note_elements(made, "tensor" if tensor else self.element_type(arguments[0]))
        return made

    def items(self, value: Any) -> Any:
        """List what iterating over a value gives."""
        return value if dialect.name_of(value) == "sequence" else self.builtin("list", [value])

    def unpack(self, value: Any, size: int) -> list[Any]:
        """Take a list or shape apart into `size` values."""
        type_ = dialect.type_of(self.element_type(value))
        return list(self.op("tfr.unpack", [value], [type_] * size).results)

    def call(self, call: Call, arguments: Sequence[Any]) -> Any:
        """Call an op; `call.keywords` names each argument."""
        segments: dict[str, list[tuple[str, Any]]] = {name: [] for name in dialect.TYPES}
        for keyword, argument in zip(call.keywords, arguments, strict=True):
            segments[dialect.name_of(argument)].append((keyword, argument))
        ordered = [pair for segment in segments.values() for pair in segment]
        sizes = [len(segment) for segment in segments.values()]
        texts = {"name": call.name, "program": call.program}
        return self._value(
            "tfr.call",
            [argument for _, argument in ordered],
            call.result,
            **{name: self._string(text) for name, text in texts.items() if text},
            op=self._string(call.op),
            keywords=ir.ArrayAttr.get(
                [self._string(keyword) for keyword, _ in ordered], self.context
            ),
            stateful=ir.BoolAttr.get(call.stateful, self.context),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get(sizes, self.context),
        )

    def unary(self, operator: str, operand: Any) -> Any:
        """Apply a unary operator."""
        type_ = dialect.name_of(operand)
        if operator == "not" and type_ not in ("tensor", "any"):
            type_ = "attr"
        elif type_ not in ("tensor", "attr"):
            type_ = "any"
        return self._value("tfr.unary", [operand], type_, operator=self._string(operator))

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        """Apply a binary operator."""
        type_ = arithmetic_type(dialect.name_of(left), dialect.name_of(right))
        return self._value("tfr.binary", [left, right], type_, operator=self._string(operator))

    def compare(self, operator: str, left: Any, right: Any) -> Any:
        """Compare two values."""
        types = (dialect.name_of(left), dialect.name_of(right))
        if operator in _ONE_ANSWER:
            type_ = "attr"
        elif "tensor" in types or "any" in types:
            type_ = arithmetic_type(*types)
        else:
            type_ = "attr"
        return self._value("tfr.compare", [left, right], type_, operator=self._string(operator))

    def shape(self, tensor: Any) -> Any:
        """Take the shape of a tensor."""
        return self._value("tfr.shape", [tensor], "dims")

    def rank(self, shape: Any) -> Any:
        """Count the dims of a shape; None, as in TF, where a tensor's rank is not known."""
        taken = dialect.producer(shape, "tfr.shape")
        if taken is None:
            return self.length(shape)
        return self._value("tfr.rank", [taken.operands[0]], "attr")

    def dtype(self, tensor: Any) -> Any:
        """Take the dtype of a tensor."""
        return self._value("tfr.dtype", [tensor], "attr")

    def length(self, value: Any) -> Any:
        """Count the elements of a list, shape or string."""
        return self._value("tfr.length", [value], "attr")

    def fail(self, error: str, pieces: Sequence[Any], types: Sequence[str]) -> list[Any]:
        """Raise `error` when the line is reached; returns stand-ins of these types."""
        op = self.op(
            "tfr.raise",
            [self.cast(piece, "any") for piece in pieces],
            [dialect.type_of("any")] * len(types),
            error=self._string(error),
        )
        return [self.cast(result, type_) for result, type_ in zip(op.results, types, strict=True)]

    def fork(self, condition: Any) -> Fork:
        """Start an `if` on Python's truth of a value."""
        fork = Fork(self, self.truth(condition))
        self._open.append(fork)
        return fork

    def truth(self, value: Any) -> Any:
        """Take Python's truth of a value: what an scf op decides on."""
        boolean = ir.IntegerType.get_signless(1, self.context)
        return self.op("tfr.truth", [value], [boolean]).results[0]

    def name_results(self, op: Any, names: Sequence[str]) -> None:
        """Note what the source calls the results of an op."""
        if any(names):
            texts = [self._string(name) for name in names]
            op.attributes[dialect.NAMES] = ir.ArrayAttr.get(texts, self.context)

    def close(self, fork: Fork) -> None:
        """Note that a fork is joined."""
        self._open.remove(fork)

    def loop(self, initial: Sequence[Any], types: Sequence[str]) -> Loop:
        """Start a loop that carries values, of these types in each trip."""
        loop = Loop(self, initial, types)
        self._open.append(loop)
        return loop

    def place_loop(self, loop: Loop, op: Any) -> None:
        """Put the op of a loop that is joined here."""
        self._point.insert(op)
        self._record(op)
        self._open.remove(loop)

    def clear(self) -> None:
        """Destroy what is no part of the module: what was given up, or is open after an error.

        MLIR frees memory that is still referred to if a value goes before its uses do, so it goes
        in the order opposite to that in which it was made; Python would let go of it in the order
        in which it forgets the error.
        """
        for one in reversed(self._open):
            one.abandon()
        self._open.clear()

    def describe(self, texts: dict[str, str]) -> None:
        """Give the module attributes, "tfr.doc" and the like; empty texts are left out."""
        for name, text in texts.items():
            if text:
                self.module.operation.attributes[name] = self._string(text)

    def function(
        self,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        parameters: Sequence[str] | None = None,
    ) -> Any:
        """Append a function to the module; returns its func.func op, whose block is empty.

        `parameters` names the inputs of the op's own function; without them it is a private one.
        """
        for recording in self._recordings:
            recording.whole = False
        attributes = {"sym_name": self._string(name)}
        if parameters is None:
            attributes["sym_visibility"] = self._string("private")
        else:
            names = [{"tfr.name": self._string(parameter)} for parameter in parameters]
            attributes["arg_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get(one, self.context) for one in names], self.context
            )
        with self.into(self.module.body):
            types = ir.FunctionType.get(
                [dialect.type_of(type_) for type_ in inputs],
                [dialect.type_of(type_) for type_ in outputs],
                self.context,
            )
            attributes["function_type"] = ir.TypeAttr.get(types, self.context)
            op = self.op("func.func", regions=1, **attributes)
        op.regions[0].blocks.append(
            *types.inputs, arg_locs=[self.locate(self._place)] * len(inputs)
        )
        return op

    def give_back(self, values: Sequence[Any]) -> None:
        """End a function."""
        self.op("func.return", values)

    def call_function(
        self, name: str, arguments: Sequence[Any], outputs: Sequence[str]
    ) -> list[Any]:
        """Call a function of the module."""
        op = self.op(
            "func.call",
            arguments,
            [dialect.type_of(type_) for type_ in outputs],
            callee=ir.FlatSymbolRefAttr.get(name, self.context),
        )
        return list(op.results)
