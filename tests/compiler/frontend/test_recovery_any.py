"""Going on after mistakes, in bodies that nobody has thought of: no crash, and no noise."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from composite.compiler.source import CompositeSyntaxError
from tests.compiler.frontend.test_constructs import ACCEPTED
from tests.compiler.frontend.test_loops_run import LOOPS

Define = Callable[..., Any]
OpDef = Callable[..., Any]

K = 'name: "k" type: "int" default_value { i: 0 }'

HELPER = "def helper(z, n=0):\n    a = z.T\n    if n:\n        a = z.U\n    return a\n"

NAMES = st.sampled_from("abxf")
PLAIN = ["x", "y", "k", "a", "b", "late", "a + b", "None", "(a, x)", "x.shape", "tf.sin"]
WRONG = ["x.T", "a.U", "x[[0]]", "tf.matmul(x)", "[z for z in a]"]
CALLS = ["f(x)", "helper(a)", "helper(b, k)", "(lambda z: z + a)(x)"]
VALUES = st.sampled_from([*PLAIN, *WRONG, *CALLS])
CONDITIONS = st.sampled_from(["k", "k > 1", "late", "a", "x.T", "len(a)", "k == helper(k)"])
SIMPLE = st.one_of(
    st.builds("{} = {}".format, NAMES, VALUES),
    st.builds("{}, {} = {}".format, NAMES, NAMES, VALUES),
    st.builds("{} += {}".format, NAMES, VALUES),
    st.builds("return {}".format, VALUES),
    st.builds("import {}".format, NAMES),
    st.builds("def {}(z): return z + {}".format, NAMES, NAMES),
    st.sampled_from(["pass", "raise late", "raise ValueError(k)", "del x", "break", "continue"]),
)
BLOCKS = st.sampled_from(["if", "if-else", "for", "while", "while-else", "with", "try"])


def joined(parts: list[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(parts))


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def block(kind: str, condition: str, name: str, first: list[str], second: list[str]) -> list[str]:
    """Lines of a compound statement."""
    word, _, more = kind.partition("-")
    if word == "for":
        head = f"for {name} in {condition}:"
    elif word == "with":
        head = f"with {condition} as {name}:"
    else:
        head = "try:" if word == "try" else f"{word} {condition}:"
    lines = [head, *indented(first)]
    if word == "try":
        return [*lines, "except ValueError:", *indented(second)]
    return [*lines, "else:", *indented(second)] if more else lines


def statements(depth: int) -> st.SearchStrategy[list[str]]:
    simple = SIMPLE.map(lambda line: [line])
    if depth == 0:
        one: st.SearchStrategy[list[str]] = simple
    else:
        inner = statements(depth - 1)
        one = st.one_of(simple, st.builds(block, BLOCKS, CONDITIONS, NAMES, inner, inner))
    return st.lists(one, min_size=1, max_size=4).map(joined)


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=statements(3))
def test_whatever_is_written_the_compiler_itself_does_not_fail(
    lines: list[str], compile_body: Any, define: Define, op_def: OpDef
) -> None:
    text = f"{HELPER}def body(x, y, k):\n" + "".join(f"{line}\n" for line in indented(lines))
    try:
        function = define(text)
    except SyntaxError:  # `break` outside of a loop, which is Python's to say
        return
    declared = op_def("Test", ["x: T", "y: T"], ["o: T"], [K])
    with contextlib.suppress(CompositeSyntaxError):
        compile_body(function, declared)


def spoilt() -> Iterator[tuple[str, str]]:
    """Bodies that are right but for one assignment or condition, which reads what is nowhere."""
    for name, body in {**LOOPS, **ACCEPTED}.items():
        for number, line in enumerate(lines := body.split("\n")):
            changed = re.sub(r"^(\s*[\w, ]+ ([-+*])?=) .*[^,]$", r"\1 late", line)
            changed = re.sub(r"^(\s*(if|while|elif)) .*:", r"\1 late:", changed)
            changed = re.sub(r"^(\s*for .* in) .*:", r"\1 late:", changed)
            if changed != line:
                yield (
                    f"{name}-{number}",
                    "\n".join([*lines[:number], changed, *lines[number + 1 :]]),
                )


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in spoilt()])
def test_one_mistake_has_no_others_in_its_wake(
    body: str, compile_body: Any, define: Define, op_def: OpDef
) -> None:
    text = "def helper(z, by=2):\n    return z * by\nsum_of = looking = helper\nFACTOR = 3\n"
    text += "def body(xs, x, k, act, ks):\n" + "".join(f"    {one}\n" for one in body.split("\n"))
    attrs = [K, 'name: "act" type: "string"', 'name: "ks" type: "list(int)"']
    with pytest.raises(CompositeSyntaxError) as caught:
        compile_body(define(text), op_def("Test", ["xs: N * T", "x: T"], ["o: T"], attrs))
    assert [one.mistake.code for one in caught.value.parts] == ["C040"]
