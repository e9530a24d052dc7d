"""What the front end decides of constants is what the runtime's folding makes of them.

One table of cases goes both ways: `decisions.static`, and a program of the same ops that is
expanded, whose error has the folded values in its text, as Python prints them.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import tensorflow as tf

from composite.compiler.frontend import decisions
from composite.compiler.tfr import Builder, Place, dialect
from tests.runtime.programs import Program, Region, expand

VALUES = [0, 1, -1, 7, 2**63 - 1, -(2**63), True, False, 0.0, 2.5, "", "RELU", None]
BINARY: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
}
COMPARE: dict[str, Callable[..., Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is": operator.is_,
    "is_not": operator.is_not,
}
UNARY: dict[str, Callable[..., Any]] = {"not": operator.not_, "neg": operator.neg}


class Case(NamedTuple):
    """An operator on constants."""

    kind: str
    operator: str
    operands: tuple[Any, ...]

    def decided(self, builder: Builder) -> Any:
        """What the front end knows of it."""
        build = getattr(builder, self.kind)
        return decisions.static(build(self.operator, *map(builder.constant, self.operands)))

    def emitted(self, region: Region) -> str:
        """The same in a program."""
        operands = [region.const(one) for one in self.operands]
        return str(getattr(region, self.kind)(self.operator, *operands))

    def in_python(self) -> Any:
        """What Python says."""
        return {**BINARY, **COMPARE, **UNARY}[self.operator](*self.operands)


PAIRS = list(itertools.product(VALUES, VALUES))
CASES = [
    *(Case("binary", name, pair) for name in BINARY for pair in PAIRS),
    *(Case("compare", name, pair) for name in COMPARE for pair in PAIRS),
    *(Case("unary", name, (one,)) for name in UNARY for one in VALUES),
]


@pytest.fixture(scope="module")
def decided() -> dict[str, tuple[Case, Any]]:
    """The cases that the front end decides, by their text: 1 == True is one key."""
    with dialect.lock, dialect.context():
        builder = Builder()
        try:
            with builder.at(Place("ops.py", 1, 1)):
                function = builder.function("Decisions", [], [])
                with builder.into(function.regions[0].blocks[0]):
                    found = {repr(case): (case, case.decided(builder)) for case in CASES}
        finally:
            builder.clear()
    return {key: pair for key, pair in found.items() if pair[1] is not decisions.ABSENT}


def test_the_runtime_folds_to_what_was_decided(decided: dict[str, tuple[Case, Any]]) -> None:
    program = Program("DecisionsAgree", [], [], [])
    values = [case.emitted(program) for case, _ in decided.values()]
    separator = program.const(";")
    program.raises("ValueError", *(piece for value in values for piece in (value, separator)))
    program.returns()
    program.register()
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        expand("DecisionsAgree")
    *folded, _ = str(error.value).rpartition("ValueError: ")[2].split(";")
    expected = [str(value) for _, value in decided.values()]
    assert dict(zip(decided, folded, strict=True)) == dict(zip(decided, expected, strict=True))


def test_python_says_the_same(decided: dict[str, tuple[Case, Any]]) -> None:
    for case, value in decided.values():
        expected = case.in_python()
        assert (type(value), value) == (type(expected), expected), case


def test_most_comparisons_of_one_type_are_decided(decided: dict[str, tuple[Case, Any]]) -> None:
    names = {case.operator for case, _ in decided.values()}
    assert names == {"add", "sub", "mul", "not", *COMPARE}
    assert len(decided) > 250
    assert repr(Case("binary", "add", (2**63 - 1, 1))) not in decided  # it overflows
    assert repr(Case("compare", "lt", (0.0, 1))) not in decided
