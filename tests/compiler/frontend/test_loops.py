"""How often a loop is translated before its carried names have types that hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler.frontend.loops import Loops

Attempts = Callable[[str], list[int]]


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch, compile_body: Any, define: Any) -> Attempts:
    """Translates a body; returns how often each loop was, by the order of their lines."""

    def translated(body: str) -> list[int]:
        counts: dict[int, int] = {}
        attempt = Loops._attempt

        def counted(self: Loops, node: Any, *arguments: Any) -> Any:
            counts[node.lineno] = counts.get(node.lineno, 0) + 1
            return attempt(self, node, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(Loops, "_attempt", counted)
            compile_body(define(body))
        return [count for _, count in sorted(counts.items())]

    return translated


def test_types_that_hold_are_found_at_once(attempts: Attempts) -> None:
    assert attempts("""
def body(x, k):
    for i in range(k):
        x = x * 2
    return x
""") == [1]


def test_a_first_value_of_another_type_costs_one_more(attempts: Attempts) -> None:
    assert attempts("""
def body(x, k):
    total = 0
    for i in range(k):
        total = total + x
    return x + total
""") == [2]


def test_a_chain_widens_a_name_an_attempt(attempts: Attempts) -> None:
    assert attempts("""
def body(x, k):
    a = 1
    b = 2
    c = 3
    for i in range(k):
        a = b
        b = c
        c = x
    return x + a
""") == [4]


def test_what_is_found_in_an_inner_loop_stays_found(attempts: Attempts) -> None:
    """Else the loops of a nest would be translated 2, 4 and 8 times."""
    assert attempts("""
def body(x, k):
    total = 0
    for i in range(k):
        for j in range(i):
            for l in range(j):
                total = total + x
    return x + total
""") == [2, 3, 4]
