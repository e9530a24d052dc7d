"""Errors at calls that are inlined: their places, those of the call beside them, and bounds."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler.frontend import inline
from composite.compiler.source import CompositeSyntaxError

Define = Callable[..., Any]

ERRORS = {
    "in a helper": """
        def helper(x):
            y = x + 1
            return y.T

        def body(x):
            return helper(x)
        """,
    "two calls deep": """
        def inner(x):
            return tf.raw_ops.Relu(feature=x)

        def outer(x):
            return inner(x * 2)

        def body(x):
            return outer(x)
        """,
    "syntax that no call is needed to see": """
        def helper(x, k=1):
            if k == 2:
                with x:
                    pass
            return x

        def body(x):
            return helper(x)
        """,
    "recursion": """
        def loop(x):
            return loop(x + 1)

        def body(x):
            return loop(x)
        """,
    "recursion of two": """
        def even(x, n):
            return x if n == 0 else odd(x, n - 1)

        def odd(x, n):
            return even(x, n - 1)

        def body(x):
            return even(x, -1)
        """,
    "the op itself": """
        def helper(x):
            return body(x)

        def body(x):
            return helper(x)
        """,
    "a nested function that calls itself": """
        def body(x):
            def inner(y):
                return inner(y)
            return inner(x)
        """,
    "a wrapped helper": """
        def plain(x):
            return x

        @functools.wraps(plain)
        def helper(x):
            return plain(x)

        def body(x):
            return helper(x)
        """,
    "a lambda of the module": "f = lambda x: -x\n\ndef body(x):\n    return f(x)\n",
    "a call of the library": """
        def body(x):
            return tf.matmul(x, y=x)
        """,
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, compile_body: Any, define: Define, golden: Any) -> None:
    body = define(ERRORS[name], functools=functools)
    with pytest.raises(CompositeSyntaxError) as caught:
        compile_body(body)
    shown = "".join(traceback.format_exception_only(caught.value))
    shown = shown.replace(str(caught.value.filename), "ops.py")
    golden(shown, f"inline_{name.replace(' ', '_')}.txt")


def test_a_number_that_is_used_over_and_over_is_found_once(
    compile_body: Any, define: Define
) -> None:
    doubled = "    n = n + n\n" * 40
    text = f"def helper(x, n):\n{doubled}    return tf.sin(x) if n == {2**40} else x\n"
    compiled = compile_body(define(f"{text}def body(x):\n    return helper(x, 1)\n"))
    assert compiled.called == ["Sin"]
    assert "scf.if" not in compiled.text


def test_recursion_is_reported_at_the_default_limit_of_python(
    compile_body: Any, define: Define
) -> None:
    # Each level nests expressions and branches as deep as helpers do in practice.
    text = """
    def f(x, n):
        if n != 0:
            if x.shape.rank == 2:
                y = (1 + (x * (f(x + 1, n - 1) if n > 5 else -f(x * 2, n - 1))))
            else:
                y = x
            return y
        return x

    def body(x):
        return f(x, DEPTH)
    """
    assert sys.getrecursionlimit() == 1000
    compile_body(define(text, DEPTH=inline.MOST_NESTED - 1))
    with pytest.raises(CompositeSyntaxError, match="`f` calls itself without end: f -> f, 16"):
        compile_body(define(text, DEPTH=inline.MOST_NESTED))


def test_endless_inlining_is_bounded(compile_body: Any, define: Define) -> None:
    functions = ["def f0(x):\n    return x\n"]
    functions += [f"def f{i}(x):\n    return f{i - 1}(f{i - 1}(x))\n" for i in range(1, 15)]
    text = "".join(functions) + "def body(x):\n    return f14(x)\n"
    with pytest.raises(CompositeSyntaxError, match="is the call number 5001 that is inlined"):
        compile_body(define(text))
