from __future__ import annotations

import gast
import pytest

from composite.compiler.frontend.analysis.scopes import Scopes
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.frontend.operators import BINARY, COMPARE, UNARY
from composite.compiler.frontend.statements import Statements
from composite.compiler.frontend.visitor import ADVICE

# Python 2's, which no Python parses any more, and the pieces of a template string.
NEVER_MET = {"Exec", "Print", "Repr", "Interpolation"}


def classes(base: type) -> list[str]:
    names = {one.__name__ for one in vars(gast).values() if _is(one, base)}
    return sorted(names - NEVER_MET)


def _is(one: object, base: type) -> bool:
    return isinstance(one, type) and issubclass(one, base) and one is not base


@pytest.mark.parametrize("name", classes(gast.stmt))
def test_every_statement_is_handled_or_refused_with_advice(name: str) -> None:
    if name == "Assert":  # written out as an `if` before any pass
        assert name not in ADVICE
        return
    handled = hasattr(Scopes, f"visit_{name}")
    assert handled != (name in ADVICE)
    # What ends a path is handled by the walk over it, not by a visit.
    in_walk = name in ("Return", "Raise", "Break", "Continue")
    assert hasattr(Statements, f"visit_{name}") == (handled and not in_walk)


@pytest.mark.parametrize("name", classes(gast.expr))
def test_every_expression_is_handled_or_refused_with_advice(name: str) -> None:
    handled = hasattr(Scopes, f"visit_{name}")
    assert handled != (name in ADVICE)
    # The pieces of an f-string are handled where it is.
    assert hasattr(Expressions, f"visit_{name}") == (handled and name != "FormattedValue")


def test_every_operator_is_in_the_table() -> None:
    assert sorted(one.__name__ for one in BINARY) == classes(gast.operator)
    assert sorted(one.__name__ for one in UNARY) == classes(gast.unaryop)
    assert sorted(one.__name__ for one in COMPARE) == classes(gast.cmpop)
