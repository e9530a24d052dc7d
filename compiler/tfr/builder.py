"""Builds TFR: one method an op, which derives the result's static type from the operands'.

Not for: what Python means (the frontend), where ops go (cursor.py), ifs and loops (fork.py,
loop.py), rewriting (canonicalize.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

from composite.compiler.tfr import constants, dialect
from composite.compiler.tfr.bindings import ir
from composite.compiler.tfr.cursor import Cursor

_GIVE_LISTS = ("range", "enumerate", "zip", "reversed", "list", "tuple", "sorted", "divmod")
_GIVE_ATTRS = ("isinstance", "is_compatible_with", "str", "repr", "ascii", "format", "join")
_TAKE_ITEMS = ("min", "max", "sum", "sum_compensated", "any", "all")

# Comparisons whose answer is one bool, whatever their operands are.
_ONE_ANSWER = frozenset({"is", "is_not", "in", "not_in"})


@dataclasses.dataclass(frozen=True)
class Call:
    """What a tfr.call says beside its operands."""

    op: str
    keywords: tuple[str, ...]
    stateful: bool
    result: str  # name of the result's type
    program: str = ""  # digest, when the callee is a composite
    name: str = ""  # the `name=` the author gave


class Unfinished(Protocol):
    """An op with blocks that grow before it has its place: see fork.py and loop.py."""

    def abandon(self) -> None:
        """Destroy it, because of an error or at the end."""


def arithmetic_type(left: str, right: str) -> str:
    """Return the type of an operator's result: with a tensor and a number, a tensor."""
    if "tensor" in (left, right):
        return "tensor"
    return left if left == right and left in ("attr", "sequence") else "any"


class Builder(Cursor):
    """Appends ops to a module. Use it under `dialect.lock` and `with builder.context`."""

    def __init__(self) -> None:
        super().__init__()
        self._elements: dict[Any, str] = {}
        self._open: list[Unfinished] = []

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
        """Return the type of the elements of a list as far as the op that made it shows it."""
        dims = dialect.name_of(value) in ("dims", "attr")
        return "attr" if dims else self.noted_elements(value)

    def noted_elements(self, value: Any) -> str:
        """Return the noted type of the elements of a value; "any" if none was noted."""
        return self._elements.get(value, "any")

    def note_elements(self, value: Any, type_: str) -> None:
        """Remember the type of the elements of a list."""
        self._elements[value] = type_

    def make_list(self, elements: Sequence[Any]) -> Any:
        """Build a list of values."""
        return self._sequence(elements)

    def make_tuple(self, elements: Sequence[Any]) -> Any:
        """Build a tuple of values."""
        return self._sequence(elements, kind=self._string("tuple"))

    def _sequence(self, elements: Sequence[Any], **attributes: Any) -> Any:
        types = list(dict.fromkeys(dialect.name_of(element) for element in elements))
        made = self._value("tfr.list", self._alike(elements), "sequence", **attributes)
        self.note_elements(made, types[0] if len(types) == 1 else "any")
        return made

    def _alike(self, values: Sequence[Any]) -> Sequence[Any]:
        """Cast values to one type, as the operands of a variadic must have."""
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
        """Call a function of Python: one that makes a list or a text, or one of numbers."""
        type_ = self._builtin_type(function, arguments)
        made = self._value(
            "tfr.builtin", self._alike(arguments), type_, function=self._string(function)
        )
        if function == "range":
            self.note_elements(made, "attr")
        elif function in ("enumerate", "zip"):
            self.note_elements(made, "sequence")
        elif type_ == "sequence" and arguments:
            self.note_elements(made, self._item_type(arguments[0]))
        return made

    def _builtin_type(self, function: str, arguments: Sequence[Any]) -> str:
        if function in _GIVE_LISTS:
            return "sequence"
        if function in _GIVE_ATTRS:
            return "attr"
        first, *others = arguments
        types = {dialect.name_of(one) for one in others}
        types.add(self._item_type(first) if function in _TAKE_ITEMS else dialect.name_of(first))
        if types == {"tensor"} and function == "abs":
            return "tensor"
        return "attr" if types == {"attr"} else "any"

    def _item_type(self, value: Any) -> str:
        """Return the type of what iterating over a value gives."""
        return "tensor" if dialect.name_of(value) == "tensor" else self.element_type(value)

    def items(self, value: Any) -> Any:
        """Build the list that iterating over a value gives."""
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
        """Build the shape of a tensor."""
        return self._value("tfr.shape", [tensor], "dims")

    def rank(self, shape: Any) -> Any:
        """Build the length of a shape; None, as in TF, where a tensor's rank is not known."""
        taken = dialect.producer(shape, "tfr.shape")
        if taken is None:
            return self.length(shape)
        return self._value("tfr.rank", [taken.operands[0]], "attr")

    def dtype(self, tensor: Any) -> Any:
        """Build the dtype of a tensor."""
        return self._value("tfr.dtype", [tensor], "attr")

    def length(self, value: Any) -> Any:
        """Build the length of a list, shape or string."""
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

    def truth(self, value: Any) -> Any:
        """Build Python's truth of a value, which scf ops take as their condition."""
        boolean = ir.IntegerType.get_signless(1, self.context)
        return self.op("tfr.truth", [value], [boolean]).results[0]

    def name_results(self, op: Any, names: Sequence[str]) -> None:
        """Note what the source calls the results of an op."""
        if any(names):
            texts = [self._string(name) for name in names]
            op.attributes[dialect.NAMES] = ir.ArrayAttr.get(texts, self.context)

    def begin(self, one: Unfinished) -> None:
        """Note that an op is being built: `clear` destroys it unless it is finished."""
        self._open.append(one)

    def finish(self, one: Unfinished) -> None:
        """Note that it has its place."""
        self._open.remove(one)

    def clear(self) -> None:
        """Destroy the ops that are not in the module: given up, or unfinished because of an error.

        A value must be destroyed after its uses, or MLIR accesses freed memory. So the ops are
        destroyed in the reverse order of their creation; left to Python, they would be in the
        order in which the error's frames are freed.
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
        self.spoil_recordings()
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
        op.regions[0].blocks.append(*types.inputs, arg_locs=[op.location] * len(inputs))
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
