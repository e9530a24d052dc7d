"""Which values are known while a function is inlined, so that dead branches are not translated.

A helper is called with constants more often than not. A branch that they rule out must not be
translated: it may not fit the arguments, and a recursion ends only where a constant decides.

What is decided here is what the runtime would fold the same ops to: one table of cases goes through
both in tests/compiler/frontend/test_decisions.py.

Not for: replacing values by their constants (compiler.tfr.canonicalize), arithmetic beyond ints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from composite.compiler.tfr import constants, dialect
from composite.compiler.tfr.canonicalize import ABSENT, constant_of, settled

__all__ = ["ABSENT", "static", "truth"]

_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "iadd": operator.add,
    "imul": operator.mul,
}


def truth(value: Any) -> bool | None:
    """Return the truth of a value if it is known, else None."""
    return _truth(value, {})


def static(value: Any) -> Any:
    """Return the Python constant that a value is known to be, ABSENT if none; never a tensor."""
    return _static(value, {})


# The results for the values that one depends on, each of which may be used many times.
_Seen = dict[Any, Any]


def _truth(value: Any, seen: _Seen) -> bool | None:
    made = dialect.producer(value, "tfr.list")
    if made is not None:
        return len(made.operands) > 0
    known = _static(value, seen)
    return None if known is ABSENT else bool(known)


def _static(value: Any, seen: _Seen) -> Any:
    if value in seen:
        return seen[value]
    op = None if dialect.name_of(value) == "tensor" else dialect.maker(value)
    if op is None:
        return ABSENT
    rule = _RULES.get(op.name)
    known = constant_of(value) if rule is None else rule(op, seen)
    seen[value] = known
    return known


def _cast(op: Any, seen: _Seen) -> Any:
    return _static(op.operands[0], seen)


def _unary(op: Any, seen: _Seen) -> Any:
    if op.attributes["operator"].value != "not":
        return ABSENT
    known = _truth(op.operands[0], seen)
    return ABSENT if known is None else not known


def _binary(op: Any, seen: _Seen) -> Any:
    function = _INTEGERS.get(op.attributes["operator"].value)
    left, right = (_static(operand, seen) for operand in op.operands)
    if function is None or type(left) is not int or type(right) is not int:
        return ABSENT
    result = function(left, right)
    return result if result in constants.INT64 else ABSENT


def _compare(op: Any, seen: _Seen) -> Any:
    name = op.attributes["operator"].value
    left, right = (_static(operand, seen) for operand in op.operands)
    if left is ABSENT or right is ABSENT:
        known, unknown = (left, op.operands[1]) if right is ABSENT else (right, op.operands[0])
        if known is None and name in ("is", "is_not") and _is_something(unknown):
            return name == "is_not"
        return ABSENT
    answer = settled(name, left, right)
    return ABSENT if answer is None else answer


def _is_something(value: Any) -> bool:
    """Say whether the static type of a value excludes None."""
    return dialect.name_of(value) in ("tensor", "sequence", "dims")


def _length(op: Any, _seen: _Seen) -> Any:
    made = dialect.producer(op.operands[0], "tfr.list")
    return ABSENT if made is None else len(made.operands)


_RULES: dict[str, Callable[[Any, _Seen], Any]] = {
    "tfr.cast": _cast,
    "tfr.unary": _unary,
    "tfr.binary": _binary,
    "tfr.compare": _compare,
    "tfr.length": _length,
}
