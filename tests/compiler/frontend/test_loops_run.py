"""Loops, comprehensions and subscripts in ops that run: what Python does, the op does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite

pytestmark = pytest.mark.many_cases

# Bodies of `def body(xs, x, k)`: xs is a list of tensors, x a tensor of shape [4, 3], k an int.
LOOPS = {
    "range": "for i in range(k):\n    x = x * 2 + i\nreturn x",
    "characters": "s = 'é→a' if k > 0 else 'ß'\nfor c in s:\n    x = x * len(c) + len(s)\n"
    "    if c == s[-1] or c in s[:1]:\n        x = x + 1\nreturn x + len(s[::-1])",
    "range_down": "for i in range(5, k, -2):\n    x = x - i\nreturn x",
    "range_from": "for i in range(-2, k):\n    x = x * i\nreturn x",
    "list": "total = x\nfor y in xs:\n    total = total + y\nreturn total",
    "number_first": "total = 0\nfor y in xs:\n    total = total + y\nreturn x + total",
    "none_first": "last = None\nfor y in xs:\n    last = y if last is None else last - y\n"
    "return x if last is None else last",
    "literal": "for a, b in ((1, 2), (3, k)):\n    x = x * a + b\nreturn x",
    "enumerate": "for i, y in enumerate(xs, 3):\n    x = x + i * y\nreturn x",
    "enumerate_keyword": "for i, y in enumerate(xs, start=k):\n    x = x + i * y\nreturn x",
    "zip": "for y, z in zip(xs, reversed(xs)):\n    x = x * y - z\nreturn x",
    "zip_shorter": "for i, y in zip(range(k), xs):\n    x = x * i - y\nreturn x",
    "nested_unpacking": "for i, (y, n) in enumerate(zip(xs, range(9))):\n    x = x + y * (i + n)\n"
    "return x",
    "rows": "total = 0\nfor row in x:\n    total = total * 2 + row\nreturn total",
    "dims": "for dim in x.shape:\n    x = x * dim\nreturn x",
    "as_list": "for i in range(len(x.shape.as_list())):\n    x = x * x.shape.as_list()[i] + i\n"
    "return x * (x.shape.as_list() + [k])[-1]",
    "while": "while k > 0:\n    x = x + k\n    k = k - 1\nreturn x",
    "while_break": "n = 0\nwhile True:\n    if n >= k:\n        break\n    x = x * 2\n    n += 1\n"
    "return x + n",
    "while_test_after_break": "n = 5\nwhile 10 // n > 0:\n    n -= 1\n    if n == 0:\n"
    "        break\nreturn x + n",
    "break": "for i in range(9):\n    if i == k:\n        break\n    x = x + i\nreturn x",
    "continue": "for i in range(6):\n    if i % 2 == k % 2:\n        continue\n    x = x * i + 1\n"
    "return x",
    "both": "n = 0\nfor i in range(8):\n    n = n + 1\n    if i == 1:\n        continue\n"
    "    x = x + i\n    if i > k:\n        x = x * 3\n        break\n    x = x - n\nreturn x * n",
    "return": "for y in xs:\n    if k > 2:\n        return x * y\n    k = k + 1\nreturn x + k",
    "return_nested": "for i in range(3):\n    for j in range(3):\n        if i * j == k:\n"
    "            return x * (10 * i + j + 1)\n        x = x + j\n    x = x - i\nreturn x",
    "else": "for i in range(4):\n    if i == k:\n        break\nelse:\n    x = x * 7\nreturn x + 1",
    "else_always": "for i in range(k):\n    x = x + i\nelse:\n    x = x * 7\nreturn x",
    "else_return": "for i in range(4):\n    if i == k:\n        return x - 1\nelse:\n"
    "    return x + 1",
    "while_else": "n = 0\nwhile n < 4:\n    if n == k:\n        break\n    n += 1\nelse:\n"
    "    return x * n\nreturn x - n",
    "nested": "for i in range(k):\n    for j in range(i):\n        if j == 2:\n            break\n"
    "        x = x + i * j\n    else:\n        x = x * 2\nreturn x",
    "swap": "a, b = x, x * 2\nfor _ in range(k):\n    a, b = b, a + b\nreturn a",
    "last_item": "i = 7\nfor i in range(k):\n    pass\nreturn x + i",
    "grow": "ys = []\nfor y in xs:\n    ys = ys + [y * k]\nreturn x + len(ys) + sum_of(ys)",
    "comprehension": "return x + sum_of([y * i for i, y in enumerate(xs)])",
    "comprehension_if": "return x + sum_of([y + i for i, y in enumerate(xs) if i != k if i < 3])",
    "comprehension_nested": "return x + sum_of([y * j for y in xs for j in range(k) if j != 1])",
    "comprehension_scope": "i = 5\nys = [i * 2 for i in range(k)]\nreturn x + i + len(ys)",
    "helper": "return looking(xs, x, k)",
    "lambda": "f = lambda y: y * k\nfor y in xs:\n    x = x + f(y)\nreturn x",
    "library": "for _ in range(k):\n    x = tf.nn.gelu(x)\nreturn x",
}

SUBSCRIPTS = [
    "x[0]",
    "x[-1]",
    "x[k % 3]",
    "x[1:]",
    "x[:-1]",
    "x[::2]",
    "x[::-1]",
    "x[3:0:-2]",
    "x[1, 2]",
    "x[..., 1:-1]",
    "x[..., 0]",
    "x[:, None]",
    "x[None, ..., None]",
    "x[:, ::-1][1:3, k % 2]",
    "x[5:2]",
    "x[-9:9]",
    "x[x.shape[0] - 1]",
    "x[: tf.raw_ops.Rank(input=x) - 1]",
    "x[tf.cast(k % 3, tf.int64)]",
    "x + len(xs[1:])",
    "x + len(xs[k:][::-1])",
    "x + sum_of(xs[::2]) - sum_of(xs[:-1])",
    "x + (1, 2, 3, 4)[-2:k][0]",
    "x + x.shape[1:][0]",
    "x if 'RELU'[1:3] == 'EL' else -x",
]

HEAD = """
import tensorflow as tf


def sum_of(ys):
    total = 0
    for y in ys:
        total = total + y
    return total


def looking(ys, x, k):
    for i, y in enumerate(ys):
        if i == k:
            return y
    return x


def body(xs, x, k):
    '''Do it.'''
"""

Make = Callable[[str], Any]

_numbers = itertools.count()


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Make:
    def make_(lines: str) -> Any:
        text = HEAD + "".join(f"    {line}\n" for line in lines.split("\n"))
        path = tmp_path / "loops.py"
        path.write_text(text, encoding="utf-8")
        namespace: dict[str, Any] = {"__name__": "loops"}
        exec(compile(text, str(path), "exec"), namespace)
        name = "".join(c for c in request.node.name.title() if c.isalnum() and c.isascii())
        decorate = composite.Composite(
            f"Loops{name}{next(_numbers)}",
            inputs=["xs: N * T", "x: T"],
            attrs=["k: int"],
            derived_attrs=["N: int >= 0", "T: {float, double}"],
            outputs=["o: T"],
        )
        return decorate(namespace["body"])

    return make_


def check(op: Any, count: int, k: int) -> None:
    random = np.random.default_rng(count)
    x, *xs = (tf.constant(random.standard_normal([4, 3]), tf.float64) for _ in range(count + 1))
    with composite.options(backend="tf"):
        np.testing.assert_allclose(op(xs, x, k=k), op.python_function(xs, x, k), rtol=1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_loops(make: Make, name: str) -> None:
    op = make(LOOPS[name])
    for count, k in ((3, 0), (3, 1), (2, 4), (4, 7), (1, -1)):
        check(op, count, k)


@pytest.mark.parametrize("name", ["list", "return", "zip", "comprehension", "library"])
def test_no_items(make: Make, name: str) -> None:
    check(make(LOOPS[name].replace("xs", "xs[9:]")), 2, 1)


@pytest.mark.parametrize("text", SUBSCRIPTS)
def test_subscripts(make: Make, text: str) -> None:
    op = make(f"return {text}")
    for count, k in ((3, 1), (2, 0), (3, 2)):
        if "2:k" not in text or k > 2:
            check(op, count, k)
    check(op, 4, 4)


ERRORS = {
    "while True:\n    k = 1\nreturn x + k": "does not end in 65536 trips",
    "for i in range(0, 5, k):\n    x = x + i\nreturn x": "the step of range() must not be zero",
    "for i in range(2**40):\n    x = x + i\nreturn x": "items, and a list has at most 65536",
    "for i, y in enumerate([1, 2], 9223372036854775807 - k):\n    x = x * y\nreturn x": "2**63 - 1",
    "for i in k:\n    x = x + i\nreturn x": "0 has no items to go through",
    "s = 'a'\nwhile True:\n    s = s + s\nreturn x + len(s)": "too long",
    "ys = [1]\nwhile True:\n    ys = ys + ys\nreturn x + len(ys)": "too long",
    "return x[:: k]": "the step of a slice must not be zero",
    "return x[x]": "a tensor is indexed with integers, slices, None and ...",
}


@pytest.mark.parametrize("lines", ERRORS)
def test_errors_at_expansion(make: Make, lines: str) -> None:
    op = make(lines)
    with pytest.raises(tf.errors.OpError, match=r"loops\.py:\d+:\d+: ") as raised:
        op([tf.zeros([2])], tf.zeros([2]), k=0)
    assert ERRORS[lines] in str(raised.value)


def test_trips_of_an_unknown_dim_are_not_yet_known(make: Make) -> None:
    op = make("for i in range(x.shape[0]):\n    x = x + i\nreturn x")
    spec = tf.TensorSpec([None, 3], tf.float32)
    called = tf.function(lambda x: op([x], x, k=0), input_signature=[spec])
    graph = called.get_concrete_function()
    assert graph.output_shapes.rank is None
    np.testing.assert_array_equal(called(tf.zeros([4, 3])), np.full([4, 3], 6.0))


def test_gradient_of_a_loop(make: Make) -> None:
    op = make(LOOPS["both"])
    x = tf.constant([[1.0, 2.0, 3.0]])
    gradients = []
    for call in (lambda: op([x], x, k=3), lambda: op.python_function([x], x, 3)):
        with composite.options(backend="tf"), tf.GradientTape() as tape:
            tape.watch(x)
            result = call()
        gradients.append(tape.gradient(result, x))
    np.testing.assert_allclose(*gradients)
