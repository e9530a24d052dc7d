"""Helpers, functions in the body and lambdas: they mean what Python says, from their own source."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from composite.compiler import tfr
from tests.compiler.frontend.test_meaning import ATTRS, Evaluator, statements

OpDef = Callable[..., Any]
Define = Callable[..., Any]
Module = Callable[[str, str], ModuleType]


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Module]:
    """`module("name", text)` writes and imports a module."""
    made: set[str] = set()

    def module_(name: str, text: str) -> ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        one = ModuleType(name)
        exec(compile(text, str(path), "exec"), one.__dict__)
        sys.modules[name] = one
        made.add(name)
        return one

    yield module_
    for name in made:
        del sys.modules[name]


@pytest.fixture
def evaluate(compile_body: Any, define: Define, op_def: OpDef) -> Callable[..., Any]:
    """Compile a body of ints a, b and c; gives the Python function and the program's."""

    def evaluate_(text: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        body = define(text)
        program = compile_body(body, op_def("Test", [], ["y: float"], ATTRS)).program
        return body, lambda **attributes: Evaluator(program).run(**attributes)[0]

    return evaluate_


ARGUMENTS = {
    "positional": "helper(a, b, c)",
    "keywords": "helper(y=c, x=a, z=b)",
    "defaults": "helper(a) + 100 * helper(b, c)",
    "keyword only": "helper(a, scale=b)",
    "twice": "helper(helper(a, b), helper(c))",
    "in a condition": "helper(b) if helper(a) > 0 else helper(c)",
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str, evaluate: Callable[..., Any]) -> None:
    python, program = evaluate(
        f"""
        BIAS = 3

        def helper(x, y=2, z=BIAS, *, scale=5):
            return (x - y * 10 + z * 1000) * scale + BIAS

        def body(a, b, c):
            return {ARGUMENTS[name]}
        """
    )
    for values in ({"a": 1, "b": 2, "c": -3}, {"a": -4, "b": 0, "c": 7}):
        assert program(**values) == python(**values)


@pytest.mark.slow
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    lines=statements(2),
    nested=st.booleans(),
    values=st.fixed_dictionaries({name: st.integers(-2, 2) for name in "abc"}),
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_helpers(
    lines: list[str], nested: bool, values: dict[str, int], evaluate: Callable[..., Any]
) -> None:
    helper = ["def helper(a, b, c=1):", "    x, y, z = a, b - c, 1"]
    helper += [f"    {line}" for line in lines] + ["    return x * y + z + K"]
    caller = [
        "x = helper(a, b, c)",
        "if x > 0:",
        "    if a == b:",
        "        return helper(x, x)",
        "    y = helper(c=a, a=x, b=2)",
        "else:",
        "    y = helper(0, b)",
        "return x + y * helper(1, -2, 2)",
    ]
    if nested:
        inside = ["K = a - b", *helper, *caller]
        text = ["def body(a, b, c):", *(f"    {line}" for line in inside)]
    else:
        text = ["K = 7", *helper, "def body(a, b, c):", *(f"    {line}" for line in caller)]
    python, program = evaluate("\n".join(text) + "\n")
    assert program(**values) == python(**values), "\n".join(text)


FUNCTIONS = {
    "a nested function": """
        def body(a, b, c):
            k = a * 10
            def inner(x, y=b + 1):
                k2 = k + x
                return k2 * y
            return inner(c) + inner(b, y=2)
        """,
    "a lambda": "def body(a, b, c):\n    f = lambda x, y=c: x * y - a\n    return f(b) + f(a, 3)",
    "a function as an argument": """
        def twice(f, x):
            return f(f(x))

        def body(a, b, c):
            return twice(lambda x: x * b + c, a) + twice(f=negative, x=b)

        def negative(x):
            return -x
        """,
    "a function that is returned": """
        def make(k):
            def add(x):
                return x + k
            return add

        def body(a, b, c):
            add = make(a)
            return make(b)(add(c))
        """,
    "a function that what follows several branches calls": """
        def body(a, b, c):
            k = a + b
            def inner(x):
                return x * k
            x = c
            if a > 0:
                if b > 0:
                    return inner(a)
                x = inner(b)
            return inner(x)
        """,
    "an argument that what follows several branches calls": """
        def apply(f, x, k):
            if k > 0:
                if k > 1:
                    return f(x)
                x = f(x + 1)
            return f(x) * 2

        def body(a, b, c):
            y = a * b
            def recursive(x, n=2):
                return y if n == 0 else x + recursive(x, n - 1)
            return apply(recursive, c, a) + apply(lambda x: x - y, c, b)
        """,
    "a function in a function": """
        def body(a, b, c):
            def outer(x):
                def inner(y):
                    return y * a + x
                return inner(b) - inner(x)
            return outer(c)
        """,
    "a tuple": """
        def pair(x, y):
            if x > y:
                return y, x
            return x, y

        def body(a, b, c):
            low, high = pair(a, b)
            return low * 10 + high * 100 + pair(b, c)[0]
        """,
    "nothing": """
        def check(x):
            if x > 100:
                raise ValueError(f"{x} is too large")

        def body(a, b, c):
            check(a)
            return b if check(c) is None else a
        """,
    "names of its own": """
        def helper(x):
            a = x + 1
            c = a * 2
            return c

        def body(a, b, c):
            x = 5
            return helper(a) + a * 10 + c * 100 + x * 1000
        """,
    "recursion that constants end": """
        def power(x, n):
            if n == 0:
                return 1
            return x * power(x, n - 1)

        def body(a, b, c):
            def times(x, n):
                return 0 if n == 0 else x + times(x, n - 1)
            return power(a, 3) + power(b, n=2) + times(c, 4)
        """,
    "an alias": "def f(x):\n    return -x\n\ndef body(a, b, c):\n    g = f\n    return g(a)\n",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, evaluate: Callable[..., Any]) -> None:
    python, program = evaluate(FUNCTIONS[name])
    for values in ({"a": 1, "b": 2, "c": -3}, {"a": 4, "b": -1, "c": 2}, {"a": -4, "b": 0, "c": 7}):
        assert program(**values) == python(**values)


def test_closures_and_tf_function(compile_body: Any) -> None:
    def make(scale: float) -> Callable[..., Any]:
        @tf.function
        def helper(x: Any) -> Any:
            return x * scale

        def body(x: Any) -> Any:
            return helper(x)

        return body

    two, three, again = (compile_body(make(scale)) for scale in (2.0, 3.0, 2.0))
    assert two.digest == again.digest != three.digest


HELPERS = """
import tensorflow as tf

LIMIT = 6.0

def clipped(x, low=0.0):
    y = tf.raw_ops.Maximum(x=x, y=low)
    return tf.raw_ops.Minimum(x=y, y=LIMIT)
"""


def test_a_helper_of_another_module(
    compile_body: Any, define: Define, module: Module, golden: Any
) -> None:
    helpers = module("helpers", HELPERS)
    text = "LIMIT = 1.0\n\ndef body(x):\n    return helpers.clipped(x * LIMIT, low=-1.0)\n"
    compiled = compile_body(define(text, helpers=helpers))
    golden(tfr.print_module(compiled.module), "helper.mlir")
    places = {n.op: n.attr["_loc"].s.decode() for n in compiled.program.function[0].node_def}
    assert places["tfr.binary"] == "ops.py:4:28"
    assert places["tfr.call"] == "helpers.py:8:12, called at ops.py:4:12"


def test_the_digest_has_the_helper_in_it(compile_body: Any, define: Define, module: Module) -> None:
    def digest(text: str) -> str:
        body = define("def body(x):\n    return h.clipped(x)\n", h=module("helpers", text))
        return str(compile_body(body).digest)

    first = digest(HELPERS)
    assert digest(HELPERS.replace("6.0", "5.0")) != first
    assert digest(HELPERS.replace("Maximum", "Minimum")) != first
    assert digest("# moved\n" + HELPERS.replace("LIMIT", "MOST")) == first
    assert digest("\n\n" + HELPERS) == first


def test_a_branch_that_constants_rule_out_is_left_out(compile_body: Any, define: Define) -> None:
    text = """
    def reduce(x, axis=None, keep=False):
        if axis is None and not keep:
            return tf.raw_ops.Neg(x=x)
        return tf.raw_ops.Sum(input=x, axis=axis, keep_dims=keep)

    def body(x):
        return reduce(x) + reduce(x, 0, True)
    """
    compiled = compile_body(define(text), optimize=False)
    assert compiled.called == ["Neg", "Sum"]
    assert "tfr.if" not in compiled.kinds


def test_types_survive_a_call(compile_body: Any, define: Define, op_def: OpDef) -> None:
    text = """
    def checked(x, k):
        if k > 3:
            raise ValueError(f"k is {k}")
        if k == 2:
            return tf.raw_ops.Abs(x=x)
        return tf.raw_ops.Neg(x=x)

    def body(x, a):
        y = checked(x, a)
        return y if y.shape.rank == 2 else tf.raw_ops.Neg(x=y)
    """
    compiled = compile_body(define(text), op_def("Test", attrs=ATTRS[:1]))
    assert re.search(r'"tfr.rank"\(%\d+\) : \(!tfr.tensor\)', compiled.text)
