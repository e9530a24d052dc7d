"""The few functions of Python and TensorFlow that have a meaning of their own in a body.

len() and bool() are nodes of the program; isinstance() is answered here, from the static type;
tf.convert_to_tensor makes an op's input of what is no tensor.

Not for: functions that are inlined (callables.py), ops (calls.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import gast

from composite.compiler.errors.calls import BUILTIN_CALL
from composite.compiler.frontend import callables
from composite.compiler.frontend.bindings import Function, Outputs, Translation
from composite.compiler.frontend.capture import Static
from composite.compiler.tfr import Call, dialect
from composite.compiler.tfr.canonicalize import ABSENT, constant_of

# Functions that make a list, with how few and how many arguments they take.
_LISTS: dict[Any, tuple[int, int]] = {
    range: (1, 3),
    enumerate: (1, 2),
    zip: (0, 64),
    reversed: (1, 1),
    list: (0, 1),
    tuple: (0, 1),
}

_KINDS = {
    "tensor": "a tensor, whose value is known only when the op runs",
    "sequence": "a list: write range(len(...))",
    "dims": "a shape: write range(x.shape[0])",
}


class Specials:
    """Translates their calls. `visit` is the expression pass: it gives the binding of a node."""

    def __init__(self, translation: Translation, visit: Callable[[Any], Any]) -> None:
        self._translation = translation
        self._source = translation.source
        self._builder = translation.builder
        self._visit = visit

    def find(self, function: object) -> Callable[[Any], Any] | None:
        """Return what translates a call of an object, None if it is none of these."""
        for special, translate in (
            (len, self._length),
            *((function, self._makes_list) for function in _LISTS),
            (bool, self._bool),
            (isinstance, self._isinstance),
            (callables.convert_to_tensor(), self._convert),
        ):
            if function is special:
                return translate
        return None

    def _makes_list(self, node: Any) -> Any:
        """range(), enumerate(), zip(), reversed(), list(), tuple(): lists, all of them."""
        name = self._visit(node.func).object.__name__
        for keyword in node.keywords:
            if (name, keyword.arg) != ("enumerate", "start") or len(node.args) != 1:
                self._source.fail(
                    keyword.value,
                    BUILTIN_CALL,
                    f"{name}() takes no `{keyword.arg}` in the body of a composite",
                )
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        least, most = _LISTS[getattr(builtins, name)]
        if not least <= len(arguments) <= most:
            self._source.fail(node, BUILTIN_CALL, f"{name}() takes {least} to {most} arguments")
        values = [self._translation.value(self._visit(one), one) for one in arguments]
        refused = {"range": ("sequence", "dims"), "reversed": ("tensor",)}.get(name, ())
        for one, value in zip(arguments, values, strict=True):
            if dialect.name_of(value) in refused:
                self._source.fail(
                    one, BUILTIN_CALL, f"{name}() of {_KINDS[dialect.name_of(value)]}"
                )
        return self._builder.builtin("list" if name == "tuple" else name, values)

    def _only_argument(self, node: Any, message: str) -> Any:
        if len(node.args) != 1 or node.keywords:
            self._source.fail(node, BUILTIN_CALL, message)
        return self._translation.value(self._visit(node.args[0]), node.args[0])

    def _length(self, node: Any) -> Any:
        value = self._only_argument(node, "len() takes one argument")
        if dialect.name_of(value) == "tensor":
            self._source.fail(node, BUILTIN_CALL, "len() of a tensor: write `x.shape[0]`")
        return self._builder.length(value)

    def _bool(self, node: Any) -> Any:
        value = self._only_argument(node, "bool() takes one argument")
        return self._builder.unary("not", self._builder.unary("not", value))

    def _isinstance(self, node: Any) -> Any:
        """Answer from the static type, which tells tensors and lists apart; no node is left."""
        if len(node.args) != 2 or node.keywords:
            self._source.fail(node, BUILTIN_CALL, "isinstance() takes two arguments")
        value = self._translation.value(self._visit(node.args[0]), node.args[0])
        kinds = node.args[1].elts if isinstance(node.args[1], gast.Tuple) else [node.args[1]]
        answer = callables.is_instance(
            known(value),
            dialect.name_of(value),
            [known(self._visit(kind)) for kind in kinds],
        )
        if answer is None:
            self._source.fail(
                node,
                BUILTIN_CALL,
                "isinstance() tells tensors (tf.Tensor) and lists ((list, tuple)) from others, "
                "where the source shows which it is; compare `x.dtype`, or make it an attribute",
            )
        return self._builder.constant(answer)

    def _convert(self, node: Any) -> Any:
        """tf.convert_to_tensor: a tensor is itself, anything else becomes the input of an op."""
        value = self._only_argument(
            node, "tf.convert_to_tensor takes one argument here; for a dtype write tf.cast"
        )
        if dialect.name_of(value) == "tensor":
            return value
        return self._builder.call(Call("Identity", ("input",), False, "tensor"), [value])


def known(binding: Any) -> Any:
    """Return the Python constant that a binding is known to be, ABSENT if it is not."""
    if isinstance(binding, Static):
        return binding.object
    if isinstance(binding, (Outputs, Function)):
        return ABSENT
    return constant_of(binding)
