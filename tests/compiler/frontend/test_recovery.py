"""One compilation shows all mistakes of a body, and nothing that only follows from one of them."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable
from typing import Any

import gast
import pytest

from composite.compiler.frontend.recovery import bound_in
from composite.compiler.source import CompositeSyntaxError
from composite.compiler.tfr import Builder

pytestmark = pytest.mark.many_cases

Define = Callable[..., Any]
OpDef = Callable[..., Any]

K = 'name: "k" type: "int" default_value { i: 0 }'


@pytest.fixture
def mistakes(compile_body: Any, define: Define, op_def: OpDef) -> Callable[..., Any]:
    """Compile a body that is refused; returns the error."""

    def mistakes_(body: str, helpers: str = "", outputs: tuple[str, ...] = ("o: T",)) -> Any:
        text = helpers + "def body(x, y, k):\n"
        text += "".join(f"    {line}\n" for line in body.splitlines())
        with pytest.raises(CompositeSyntaxError) as caught:
            compile_body(define(text), op_def("Test", ["x: T", "y: T"], outputs, [K]))
        return caught.value

    return mistakes_


def found(error: CompositeSyntaxError) -> list[tuple[int | None, str]]:
    """The lines in the body, counted from one, and the codes."""
    return [(one.lineno and one.lineno - 1, one.mistake.code) for one in error.parts]


# Bodies with the lines and codes of their mistakes.
SEVERAL = {
    "two statements": ("a = x.T\nb = y[[0]]\nreturn x", [(1, "C056"), (2, "C058")]),
    "names and types": ("a = x.T\nb = late\nreturn c", [(1, "C056"), (2, "C040"), (3, "C040")]),
    "what a first pass and a later one find": (
        "a = x.T\nwith x:\n    pass\nb = x @ 2\nreturn x",
        [(1, "C056"), (2, "C020"), (4, "C055")],
    ),
    "what follows is not said": ("a = x.T\nb = a + 1\nc = b.nothing\nreturn c", [(1, "C056")]),
    "a name of a statement that nobody knows": (
        "try:\n    a = x\nexcept ValueError as e:\n    pass\nimport os as b\nc = tf.sin(e)\n"
        "return a * b + x.T",
        [(1, "C020"), (5, "C021")],
    ),
    "names that match binds": (
        "match k:\n    case [a, *b]:\n        pass\n    case {'c': 1, **d}:\n        pass\n"
        "return a + b + d",
        [(1, "C022")],
    ),
    "an undefined name is said once": ("a = late\nb = late\nreturn late", [(1, "C040")]),
    "an unassigned name is said once": (
        "if k:\n    a = x\nb = a + 1\nc = a + 2\nd = b.T\nreturn x.T",
        [(3, "C042"), (6, "C056")],
    ),
    "two branches": (
        "if k:\n    a = x.T\nelse:\n    a = x.U\nreturn a",
        [(2, "C056"), (4, "C056")],
    ),
    "one branch": ("if k:\n    a = x.T\nelse:\n    a = x\nreturn a.T", [(2, "C056")]),
    "a function in one branch": (
        "if k:\n    a = x.T\nelse:\n    a = tf.sin\nreturn a(x)",
        [(2, "C056")],
    ),
    "a condition and what it governs": (
        "if x.T:\n    return x.U\nreturn x.V",
        [(1, "C056"), (2, "C056"), (3, "C056")],
    ),
    "a condition without a return": (
        "a = x\nif late:\n    a = x.T\nb = x.U\nreturn a",
        [(2, "C040"), (3, "C056"), (4, "C056")],
    ),
    "nested blocks": (
        "a = x\nfor i in range(3):\n    if k:\n        a = x.T\n    while k:\n        b = x.U\n"
        "    else:\n        c = x.V\nreturn a",
        [(4, "C056"), (6, "C056"), (8, "C056")],
    ),
    "what a loop goes over": (
        "a = x\nfor i in late:\n    a = a + i\n    b = x.T\nreturn a",
        [(2, "C040"), (4, "C056")],
    ),
    "a loop that is translated twice": (
        "a = x\nfor i in range(3):\n    b = y.T\n    a = (a, x)\nreturn x.U",
        [(3, "C056"), (5, "C056")],
    ),
    "a return in a loop": (
        "for i in range(3):\n    if i == k:\n        return x.T\n    a = x.U\nreturn y",
        [(3, "C056"), (4, "C056")],
    ),
    "a rest that two branches share": (
        "a = x\nif k:\n    if k > 1:\n        return x.T\nelif k < 3:\n    a = y\n    if k > 1:\n"
        "        return y\nb = a + x.U\nreturn y.V",
        [(4, "C056"), (9, "C056"), (10, "C056")],
    ),
    "a shared rest whose names are not bound": (
        "if k:\n    if k > 1:\n        return x\nelif k < 3:\n    a = y\n    if k > 1:\n"
        "        return y\nreturn a",
        [(8, "C042")],
    ),
    "targets, element by element": ("a, b = x.T, y\nreturn a + b + x.U", [(1, "C056")]),
    "augmented": ("a = x.T\na += 1\na @= 2\nreturn a", [(1, "C056")]),
    "a function of the body": (
        "def f(z):\n    w = z.T\n    return z.U\nreturn f(x)",
        [(2, "C056"), (3, "C056")],
    ),
    "a function of the body with syntax that nobody knows": (
        "def f(z):\n    del z\n    with z:\n        pass\nreturn f(x) + x.T",
        [(2, "C021"), (3, "C020")],
    ),
    "a function that takes what is unknown": (
        "a = x.T\ndef f(z):\n    return z + a\ng = lambda z: z * a\nreturn f(x) + g(x)",
        [(1, "C056")],
    ),
    "an attribute of a function": ("def f(z):\n    return z\nreturn f.T", [(3, "C046")]),
    "a lambda": ("f = lambda z: z.T\nb = x.U\nreturn f(x)", [(2, "C056"), (1, "C056")]),
    "a comprehension": (
        "a = [z.T for z in (x, y)]\nb = [late for z in (x, y)]\nreturn a[0]",
        [(1, "C056"), (2, "C040")],
    ),
    "returns": ("if k:\n    return x, y\n    a = x.T\nreturn", [(2, "C031"), (4, "C030")]),
    "raises": (
        "if k:\n    raise ValueError(x)\nif k > 1:\n    raise\nreturn x.T",
        [(2, "C024"), (4, "C024"), (5, "C056")],
    ),
    "calls": (
        "a = tf.nn.relu(feature=x)\nb = tf.matmul(x)\nc = np.tanh(x)\nreturn tf.nn.rellu(a)",
        [(1, "C072"), (2, "C072"), (3, "C071"), (4, "C044")],
    ),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_all_mistakes_and_only_they_are_shown(case: str, mistakes: Callable[..., Any]) -> None:
    body, expected = SEVERAL[case]
    assert found(mistakes(body)) == expected


HELPERS = "def helper(z, n=0):\n    a = z.T\n    if n:\n        a = z.U\n    return a\n"


def test_a_helper_s_mistakes_are_shown_with_the_call(mistakes: Callable[..., Any]) -> None:
    error = mistakes("a = helper(x)\nb = helper(y)\nc = y[[0]]\nreturn a", HELPERS)
    first, *others = error.parts
    assert [(one.lineno, one.mistake.code) for one in error.parts] == [(2, "C056"), (9, "C058")]
    assert first.calls == ("`helper` is called at ops.py:7:9",)
    assert str(first).endswith(
        "Transpose; `helper` is called at ops.py:7:9 [C056] (ops.py, line 2)"
    )
    assert others[0].calls == ()


def test_all_branches_of_a_helper_that_constants_do_not_rule_out(
    mistakes: Callable[..., Any],
) -> None:
    assert [one.lineno for one in mistakes("return helper(x, k)", HELPERS).parts] == [2, 4]
    assert [one.lineno for one in mistakes("return helper(x, 1)", HELPERS).parts] == [2, 4]
    assert [one.lineno for one in mistakes("return helper(x, 0)", HELPERS).parts] == [2]


def test_a_helper_s_syntax_and_types(mistakes: Callable[..., Any]) -> None:
    helper = "def helper(z):\n    with z:\n        pass\n    a = z.T\n    return a\n"
    error = mistakes("a = x.U\nreturn helper(x)", helper)
    assert [(one.lineno, one.mistake.code) for one in error.parts] == [
        (7, "C056"),
        (2, "C020"),
        (4, "C056"),
    ]


def test_a_condition_that_ends_a_recursion(mistakes: Callable[..., Any]) -> None:
    helper = "def helper(z, n):\n    if n.zero:\n        return z\n    return helper(z, n - 1)\n"
    error = mistakes("return helper(x, 3)", helper)
    assert [one.mistake.code for one in error.parts] == ["C056"]


def test_a_recursion_without_end_is_shown_with_what_was_found(
    mistakes: Callable[..., Any],
) -> None:
    helper = "def helper(z):\n    a = helper(z)\n    b = helper(z)\n    return a + b\n"
    error = mistakes("a = x.T\nreturn helper(x)", helper)
    assert [one.mistake.code for one in error.parts] == ["C056", "C047"]


def test_the_library_says_one_thing_at_the_author_s_line(mistakes: Callable[..., Any]) -> None:
    error = mistakes("a = x.T\nreturn tf.matmul(x, y, transpose_a=x)")
    assert found(error) == [(1, "C056"), (2, "C074")]


def test_what_is_printed(mistakes: Callable[..., Any], golden: Any) -> None:
    error = mistakes("a = x.T\n\tb = helper(y)\nreturn x @ k".replace("\t", ""), HELPERS)
    path = str(error.filename)
    shown = "".join(traceback.format_exception_only(error)).replace(path, "ops.py")
    golden(shown, "recovery.txt")


def test_one_mistake_is_printed_alone(mistakes: Callable[..., Any]) -> None:
    error = mistakes("return x.T")
    assert error.others == ()
    assert error.msg == f"{error.sentence} [C056]"


def test_errors_of_the_compiler_itself_pass_through(
    compile_body: Any, define: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Builder, "shape", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        compile_body(define("def body(x):\n    a = x.T\n    return x * x.shape[0]\n"))


@pytest.mark.parametrize("case", SEVERAL)
def test_mistakes_leave_nothing_behind(
    case: str, compile_body: Any, define: Define, op_def: OpDef
) -> None:
    lines = SEVERAL[case][0].splitlines()
    body = define("def body(x, y, k):\n" + "".join(f"    {line}\n" for line in lines))
    errors = []
    for _ in range(5):
        with pytest.raises(CompositeSyntaxError) as caught:
            compile_body(body, op_def("Test", ["x: T", "y: T"], ["o: T"], [K]))
        errors.append(caught)
    errors.reverse()
    del errors, caught
    gc.collect()
    assert compile_body(define("def body(x):\n    return x\n")).called == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = b", "a"),
        ("a, (b, *c) = d", "a b c"),
        ("a.b = c", ""),
        ("import a.b, c as d", "a d"),
        ("for a in b:\n    c = 1", "a c"),
        ("with a as b:\n    c: int = 1", "b c"),
        ("try:\n    a = 1\nexcept E as b:\n    pass", "a b"),
        ("def f(a):\n    b = 1", "f"),
        ("class C:\n    b = 1", "C"),
        ("f = lambda a: (b := a)", "f"),
        ("a = (b := 1)", "a b"),
        ("del a", "a"),
        ("global a, b", "a b"),
        ("match a:\n    case [b, *c]: pass\n    case {1: d, **e} as f: pass", "b c d e f"),
    ],
)
def test_the_names_that_a_statement_binds(text: str, names: str) -> None:
    assert sorted(bound_in(gast.parse(text).body[0])) == names.split()
