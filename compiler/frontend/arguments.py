"""The arguments of a call, matched with the parameters of what is called.

Not for: whether a value fits its parameter (calls.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from composite.compiler.errors.calls import ARGUMENTS
from composite.compiler.frontend.tf_ops import Parameter
from composite.compiler.source import Source


@dataclasses.dataclass(frozen=True)
class Signature:
    """The parameters of a callee: the first `positional` may be given by position, all by name.

    `derived` are attributes that the inputs of an op determine. Messages do not list the parameters
    in `unlisted`. `rest` is a parameter that takes all further positional arguments, as a list.
    """

    spelling: str
    parameters: tuple[Parameter, ...]
    positional: int
    derived: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    rest: Parameter | None = None

    def with_rest(self, name: str) -> Signature:
        """Return the signature with a parameter that takes the positional arguments from it on."""
        position = [one.name for one in self.parameters].index(name)
        others = (*self.parameters[:position], *self.parameters[position + 1 :])
        return dataclasses.replace(
            self, parameters=others, positional=position, rest=self.parameters[position]
        )

    @property
    def names(self) -> list[str]:
        """The names of the parameters, for messages."""
        return [one.name for one in self.parameters if one.name not in self.unlisted]


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument: its node, its parameter, and the binding that is passed."""

    node: Any
    parameter: Parameter
    value: Any


def match(
    source: Source, node: Any, signature: Signature, evaluate: Callable[[Any], Any]
) -> list[Argument]:
    """Evaluate the arguments of a gast.Call, left to right, and match them with the parameters.

    Raises:
        CompositeSyntaxError: for an argument too many, unknown, given twice or missing.
    """
    by_name = {parameter.name: parameter for parameter in signature.parameters}
    arguments, rest = [], []
    for index, argument in enumerate(node.args):
        if index >= signature.positional and signature.rest is not None:
            rest.append(evaluate(argument))
            continue
        if index >= signature.positional:
            source.fail(argument, ARGUMENTS, _too_many(signature))
        parameter = by_name.pop(signature.parameters[index].name)
        arguments.append(Argument(argument, parameter, evaluate(argument)))
    for keyword in node.keywords:
        if keyword.arg not in by_name:
            source.fail(keyword.value, ARGUMENTS, _unknown(signature, keyword.arg))
        parameter = by_name.pop(keyword.arg)
        arguments.append(Argument(keyword.value, parameter, evaluate(keyword.value)))
    missing = [f"`{one.name}`" for one in by_name.values() if one.required]
    if missing:
        source.fail(
            node, ARGUMENTS, f"{signature.spelling} is called without {' and '.join(missing)}"
        )
    if signature.rest is not None:
        arguments.append(Argument(node, signature.rest, rest))
    return arguments


def _too_many(signature: Signature) -> str:
    if signature.positional == len(signature.parameters):
        return f"{signature.spelling} takes {signature.positional} arguments, and this is one more"
    if signature.positional:
        return (
            f"{signature.spelling} takes {signature.positional} arguments by position: name this "
            "one"
        )
    names = ", ".join(f"{name}=" for name in signature.names)
    return f"{signature.spelling} takes its arguments by name: {names}"


def _unknown(signature: Signature, name: str) -> str:
    spelling = signature.spelling
    if name in {parameter.name for parameter in signature.parameters}:
        return f"{spelling} is given `{name}` twice"
    if name in signature.derived:
        return f"{spelling} is not given `{name}`: its inputs determine it; leave it out"
    names = ", ".join(signature.names)
    return f"{spelling} has no argument `{name}`; it has {names}"
