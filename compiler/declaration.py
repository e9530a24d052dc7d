"""Checks that the declaration of an op is consistent, and that its Python function fits it.

Not for: what a declaration says (schema.py), whether TensorFlow can parse it (the runtime). A leaf,
as schema.py is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import gast

from composite.compiler.errors import Mistake
from composite.compiler.errors.declarations import (
    NAME_TAKEN,
    NO_OP_DEF,
    NOT_PLAIN,
    OTHER_DEFAULT,
    PARAMETERS,
    WRONG_LIST,
)
from composite.compiler.schema import AttrSpec, OpSchema, same_default
from composite.compiler.source import CompositeSyntaxError, Source


def check(schema: OpSchema, source: Source, declared: str = "the declaration") -> None:
    """Check the declaration, and the Python function against it.

    Args:
        schema: the declaration.
        source: the function.
        declared: what messages call the declaration.

    Raises:
        CompositeSyntaxError: for all mistakes of the declaration alone, or else at the first
            parameter that does not fit it.
    """
    errors = [
        source.error(declared_at(source, one.subject), one.mistake, one.message)
        for one in _mistakes(schema)
    ]
    if errors:
        raise CompositeSyntaxError.together(errors)
    _check_parameters(schema, source, declared)


def declared_at(source: Source, name: str) -> Any:
    """Return the node where a decorator of the function declares `name`, else the `def` itself."""
    for decorator in source.tree.decorator_list:
        for node in gast.walk(decorator):
            if isinstance(node, gast.Constant) and isinstance(node.value, str):
                declared, colon, _ = node.value.partition(":")
                if colon and declared.strip() == name:
                    return node
    return source.tree.decorator_list[0] if source.tree.decorator_list else source.tree


@dataclasses.dataclass(frozen=True)
class _Contradiction:
    """A contradiction within a declaration; `subject` is the name that it is about."""

    subject: str
    mistake: Mistake
    message: str


def _mistakes(schema: OpSchema) -> Iterator[_Contradiction]:
    """Yield the contradictions within the declaration."""
    yield from _name_mistakes(schema)
    yield from _dtype_mistakes(schema)
    if schema.declared_derived is None:
        return
    given, bound = {attr.name for attr in schema.attrs}, {attr.name for attr in schema.derived}
    for name in schema.declared_derived:
        if name in given:
            yield _Contradiction(
                name,
                WRONG_LIST,
                f"no input determines the derived attribute `{name}`; use it in an input "
                f'("x: {name}") or move it to `attrs`',
            )
    for name in sorted(bound - set(schema.declared_derived)):
        yield _Contradiction(
            name,
            WRONG_LIST,
            f"the attribute `{name}` is determined by an input; move it to `derived_attrs`",
        )


def _name_mistakes(schema: OpSchema) -> Iterator[_Contradiction]:
    seen: set[str] = set()
    for name in (*schema.parameters, *(attr.name for attr in schema.derived)):
        if name in seen:
            yield _Contradiction(name, NAME_TAKEN, f"`{name}` is declared twice")
        seen.add(name)
        if name == "name":
            yield _Contradiction(
                name,
                NAME_TAKEN,
                "`name` is the argument that names a node; call this one otherwise",
            )


# By DataType: of these, TensorFlow 2.21 has the names alone. Its ops, casts included, take none.
_ONLY_NAMES = {26: "float8_e4m3fnuz", 27: "float8_e4m3b11fnuz", 28: "float8_e5m2fnuz"}


def _dtype_mistakes(schema: OpSchema) -> Iterator[_Contradiction]:
    for arg in (*schema.inputs, *schema.outputs):
        if arg.dtype in _ONLY_NAMES:
            yield _Contradiction(
                arg.name,
                NO_OP_DEF,
                f"`{arg.name}: {_ONLY_NAMES[arg.dtype]}`: TensorFlow has no op, not even a cast, "
                "that takes this dtype; declare float8_e5m2, float8_e4m3fn or uint8",
            )


def _check_parameters(schema: OpSchema, source: Source, declared: str) -> None:
    arguments = source.tree.args
    extra = arguments.vararg or arguments.kwarg or next(iter(arguments.kwonlyargs), None)
    if extra is not None:
        source.fail(
            extra,
            NOT_PLAIN,
            f"`{extra.id}`: a composite takes plain parameters, its inputs and then its "
            f"attributes: ({', '.join(schema.parameters)})",
        )
    parameters = arguments.posonlyargs + arguments.args
    _check_names(schema, source, parameters, f"{declared} has ({', '.join(schema.parameters)})")
    defaults = source.function.__defaults__ or ()
    offset = len(parameters) - len(defaults)
    for parameter, default in zip(parameters[offset:], defaults, strict=True):
        _check_default(schema, source, parameter, default)


def _check_names(schema: OpSchema, source: Source, parameters: list[Any], wanted: str) -> None:
    expected = schema.parameters
    for parameter, name in zip(parameters, expected, strict=False):
        if parameter.id == name:
            continue
        if parameter.id in {attr.name for attr in schema.derived}:
            reason = (
                "is derived from the inputs and is not given by the caller; read x.dtype or len(x)"
            )
        elif parameter.id in expected:
            reason = f"is not in order: `{name}` comes here"
        else:
            reason = f"is not declared: `{name}` is expected here"
        source.fail(parameter, PARAMETERS, f"the parameter `{parameter.id}` {reason}; {wanted}")
    if len(parameters) > len(expected):
        surplus = parameters[len(expected)]
        source.fail(surplus, PARAMETERS, f"the parameter `{surplus.id}` is not declared; {wanted}")
    if len(parameters) < len(expected):
        missing = expected[len(parameters)]
        source.fail(
            declared_at(source, missing),
            PARAMETERS,
            f"`{missing}` is declared, but `{source.tree.name}` has no parameter for it; {wanted}",
        )


def _check_default(schema: OpSchema, source: Source, parameter: Any, default: object) -> None:
    spec = schema.input_or_attr(parameter.id)
    if not isinstance(spec, AttrSpec):
        source.fail(parameter, OTHER_DEFAULT, f"the input `{parameter.id}` cannot have a default")
    if not spec.has_default:
        source.fail(
            parameter,
            OTHER_DEFAULT,
            f"the attribute `{spec.name}` has no default; declare it, "
            f'"{spec.name}: {spec.type} = {default!r}"',
        )
    if not same_default(spec, default):
        source.fail(
            parameter,
            OTHER_DEFAULT,
            f"the default of `{spec.name}` is {default!r} here and {spec.default!r} in the "
            "declaration",
        )
