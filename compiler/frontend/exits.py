"""What `return` gives: the outputs of an op, or the result of a function that is inlined.

Not for: which statements follow which (statements.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import gast

from composite.compiler.errors.statements import RETURN_COUNT, RETURN_KIND
from composite.compiler.frontend.bindings import Outputs, Translation
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.schema import OpSchema
from composite.compiler.tfr import dialect


class Exit(Protocol):
    """How a path ends; `types` are the static types that all paths give their values.

    `names` are the author's names for the values, if there are any. `hidden` are the names that the
    front end has added to the environment and that the end of a path reads.
    """

    types: tuple[str, ...]
    names: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def returned(self, node: Any) -> list[Any]:
        """Translate a `return`; gives bindings, one of each type."""

    def fall_off(self) -> list[Any]:
        """End a path that has no `return`."""

    def ended(self, by_break: bool) -> list[Any]:
        """End a trip of a loop by `break` or `continue`: Python allows them nowhere else."""
        word = "break" if by_break else "continue"
        raise AssertionError(f"`{word}` stands outside of a loop")

    def joined(self, results: list[Any]) -> list[Any]:
        """Cast the results of an `if` to `types`, if the end requires them."""


class ResultExit(Exit):
    """The result of an inlined function: any one binding, None on a path without `return`."""

    types = ("any",)

    def __init__(self, translation: Translation, expressions: Expressions) -> None:
        self._builder = translation.builder
        self._expressions = expressions

    def returned(self, node: Any) -> list[Any]:
        """Translate a `return`."""
        if node.value is None:
            return self.fall_off()
        return [self._expressions.visit(node.value)]

    def fall_off(self) -> list[Any]:
        """Give None."""
        return [self._builder.constant(None)]

    def joined(self, results: list[Any]) -> list[Any]:
        """Return them as they are, so that what is known of their types is kept."""
        return results


class OutputsExit(Exit):
    """The outputs of the op, each a tensor or a list of tensors."""

    def __init__(
        self, translation: Translation, expressions: Expressions, schema: OpSchema
    ) -> None:
        self.types = tuple("sequence" if out.is_list else "tensor" for out in schema.outputs)
        self.names = tuple(out.name for out in schema.outputs)
        self._translation = translation
        self._source = translation.source
        self._builder = translation.builder
        self._expressions = expressions
        self._schema = schema

    def returned(self, node: Any) -> list[Any]:
        """Translate a `return`."""
        count = len(self.types)
        nothing = node.value is None or (
            isinstance(node.value, gast.Constant) and node.value.value is None
        )
        if count == 0 or nothing:
            if not nothing or count:
                self._fail_count(node, 0 if nothing else 1)
            return []
        if count == 1:
            return [self._output(node.value, self._expressions.value(node.value), 0)]
        if isinstance(node.value, (gast.Tuple, gast.List)):
            if len(node.value.elts) != count:
                self._fail_count(node, len(node.value.elts))
            values = [self._expressions.value(element) for element in node.value.elts]
            nodes = list(node.value.elts)
        else:
            binding = self._expressions.visit(node.value)
            if isinstance(binding, Outputs) and len(binding.names) != count:
                self._fail_count(node, len(binding.names))
            if dialect.name_of(self._translation.value(binding, node.value)) in ("tensor", "attr"):
                self._fail_count(node, 1)
            values = self._expressions.taken_apart(binding, count, node.value)
            nodes = [node.value] * count
        return [
            self._output(at, value, index)
            for index, (at, value) in enumerate(zip(nodes, values, strict=True))
        ]

    def _fail_count(self, node: Any, count: int) -> None:
        names = ", ".join(output.name for output in self._schema.outputs)
        self._source.fail(
            node,
            RETURN_COUNT,
            f"this returns {_counted(count, 'value')}, and {self._schema.op_name} has "
            f"{_counted(len(self.types), 'output')}{names and ': '}{names}",
        )

    def _output(self, node: Any, value: Any, index: int) -> Any:
        """Give a returned value the type of its output."""
        want, have = self.types[index], dialect.name_of(value)
        if have in (want, "any") or (want, have) == ("tensor", "attr"):
            return self._builder.cast(value, want)
        what = {"tensor": "one tensor", "sequence": "a list of tensors", "dims": "a shape"}
        return self._source.fail(
            node,
            RETURN_KIND,
            f"the output `{self._schema.outputs[index].name}` is {what[want]}, and this is "
            f"{what.get(have, 'an attribute')}",
        )

    def fall_off(self) -> list[Any]:
        """Raise an error when the path is taken: an op always has all of its outputs."""
        if not self.types:
            return []
        text = f"{self._schema.op_name}: `{self._source.tree.name}` returns nothing on this path"
        return self._builder.fail("ValueError", [self._builder.constant(text)], self.types)

    def joined(self, results: list[Any]) -> list[Any]:
        """Give each output its type."""
        return [
            self._builder.cast(result, type_)
            for result, type_ in zip(results, self.types, strict=True)
        ]


def spoken(names: Iterable[str]) -> list[str]:
    """Return the author's names of values; "" for names that the front end has added."""
    return ["" if name.startswith(".") else name for name in names]


def _counted(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"
