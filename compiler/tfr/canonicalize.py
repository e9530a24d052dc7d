"""Canonicalization: rewrites that keep the meaning whatever the call is, as MLIR patterns.

- an element of a list that is built in sight, an unpacked list, the length of one: the elements;
- an `if` whose condition is a constant: the branch that is taken;
- `not` and comparisons of constants that Python settles without arithmetic: the answer;
- casts that cancel out.

Not for: arithmetic on constants. What a number means next to a tensor, the expansion decides. Only
results that do not depend on that are folded here, so that `if DEBUG:` costs nothing.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from composite.compiler.tfr import constants, dialect
from composite.compiler.tfr.bindings import ir, rewrite

# A pattern returns False if it has rewritten the op: MLIR's bindings take True for a failed match.
_MATCHED, _FAILED = False, True

ABSENT = object()

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def constant_of(value: Any) -> Any:
    """Return the attribute value (never a tensor) that `value` is known to be, else ABSENT."""
    op = dialect.producer(value, "tfr.constant")
    if op is None or dialect.name_of(value) != "attr":
        return ABSENT
    return constants.to_python(op.attributes["value"])


def _replace_by_constant(op: Any, value: object, rewriter: Any) -> bool:
    attribute = constants.to_attribute(value)
    with rewriter.ip:
        made = ir.Operation.create(
            "tfr.constant",
            results=[dialect.type_of(constants.result_type(attribute))],
            attributes={"value": attribute},
            loc=op.location,
        )
    # Of an operand that became known here only, the result is `any`.
    return _replace_by_values(op, list(made.results), rewriter)


def _replace_by_values(op: Any, values: list[Any], rewriter: Any) -> bool:
    """Replace the results of an op by values, which are cast where the static types differ."""
    replacements = []
    for result, value in zip(op.results, values, strict=True):
        if result.type == value.type:
            replacements.append(value)
            continue
        with rewriter.ip:
            cast = ir.Operation.create(
                "tfr.cast", results=[result.type], operands=[value], loc=op.location
            )
        replacements.append(cast.results[0])
    rewriter.replace_op(op, replacements)
    return _MATCHED


def _through_casts(value: Any) -> Any:
    while (op := dialect.producer(value, "tfr.cast")) is not None:
        value = op.operands[0]
    return value


def _elements(value: Any) -> list[Any] | None:
    op = dialect.producer(_through_casts(value), "tfr.list")
    return None if op is None else list(op.operands)


def _item(op: Any, rewriter: Any) -> bool:
    elements, index = _elements(op.operands[0]), constant_of(op.operands[1])
    if elements is None or type(index) is not int:
        return _FAILED
    if not -len(elements) <= index < len(elements):
        return _FAILED  # an IndexError, with its place, when the node expands
    return _replace_by_values(op, [elements[index]], rewriter)


def _unpack(op: Any, rewriter: Any) -> bool:
    elements = _elements(op.operands[0])
    if elements is None or len(elements) != len(op.results):
        return _FAILED
    return _replace_by_values(op, elements, rewriter)


def _length(op: Any, rewriter: Any) -> bool:
    elements = _elements(op.operands[0])
    if elements is None:
        return _FAILED
    return _replace_by_constant(op, len(elements), rewriter)


def _cast(op: Any, rewriter: Any) -> bool:
    source = _through_casts(op.operands[0])
    if source.type == op.results[0].type:
        return _replace_by_values(op, [source], rewriter)
    if source == op.operands[0] or "any" not in (
        dialect.name_of(source),
        dialect.name_of(op.results[0]),
    ):
        return _FAILED
    return _replace_by_values(op, [source], rewriter)


def _unary(op: Any, rewriter: Any) -> bool:
    value, name = constant_of(op.operands[0]), op.attributes["operator"].value
    elements = _elements(op.operands[0])
    if name == "not" and elements is not None:
        return _replace_by_constant(op, not elements, rewriter)
    if value is ABSENT:
        return _FAILED
    if name == "not":
        return _replace_by_constant(op, not value, rewriter)
    if name == "neg" and type(value) in (int, float) and not _overflows(value):
        return _replace_by_constant(op, -value, rewriter)
    return _FAILED


def _overflows(value: float) -> bool:
    return type(value) is int and -value not in constants.INT64


def _compare(op: Any, rewriter: Any) -> bool:
    left = constant_of(op.operands[0])
    right = ABSENT if left is ABSENT else constant_of(op.operands[1])
    if right is ABSENT or dialect.name_of(op.results[0]) != "attr":
        return _FAILED
    answer = settled(op.attributes["operator"].value, left, right)
    return _FAILED if answer is None else _replace_by_constant(op, answer, rewriter)


def settled(name: str, left: Any, right: Any) -> bool | None:
    """Return the result of comparing two constants if it does not depend on dtypes, else None.

    >>> settled("ne", "RELU", "TANH"), settled("lt", -1, 0), settled("lt", 0.1, 1)
    (True, True, None)
    """
    same = type(left) is type(right) and type(left) is not float
    if name in ("eq", "ne") and same:
        return bool((left == right) == (name == "eq"))
    if name in ("is", "is_not") and (left is None or right is None):
        return (left is right) == (name == "is")
    if name in _ORDER and same and isinstance(left, (int, str)):
        return _ORDER[name](left, right)
    return None


def _if(op: Any, rewriter: Any) -> bool:
    truth = dialect.producer(op.operands[0], "tfr.truth")
    if truth is None:
        return _FAILED
    value = constant_of(truth.operands[0])
    if value is ABSENT:
        elements = _elements(truth.operands[0])
        if elements is None:
            return _FAILED
        value = elements
    *body, terminator = list(op.regions[0 if value else 1].blocks[0].operations)
    for inner in body:
        inner.move_before(op)
    rewriter.replace_op(op, list(terminator.operands))
    return _MATCHED


_PATTERNS: dict[str, Callable[[Any, Any], bool]] = {
    "tfr.item": _item,
    "tfr.unpack": _unpack,
    "tfr.length": _length,
    "tfr.cast": _cast,
    "tfr.unary": _unary,
    "tfr.compare": _compare,
    "scf.if": _if,
}


@functools.cache
def _frozen_patterns() -> Any:
    with dialect.context():
        patterns = rewrite.RewritePatternSet()
        for root, pattern in _PATTERNS.items():
            patterns.add(root, pattern)
        return patterns.freeze()


def canonicalize(module: Any) -> None:
    """Rewrite a module until no pattern applies; unused values without effects go as well."""
    with dialect.lock, dialect.context():
        rewrite.apply_patterns_and_fold_greedily(module, _frozen_patterns())
