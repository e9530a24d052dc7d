"""The advice of an error leads on: what the message says to write compiles, and gives the same."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from composite.compiler.frontend import advice
from composite.compiler.source import CompositeSyntaxError

_numbers = itertools.count()

HEAD = """\
import tensorflow as tf

@tf.custom_gradient
def clipped(a):
    def gradient(upstream):
        return upstream * 7
    return a * 2, gradient

def body(x):
"""


def define(lines: str) -> Any:
    name = f"Advice{next(_numbers)}"
    text = HEAD + "".join(f"    {line}\n" for line in lines.split("\n"))
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "advice"}
    exec(compile(text, file, "exec"), namespace)
    return Composite(name, inputs=["x: float"], outputs=["y: float"])(namespace["body"])


FUNCTIONS = """\
f = lambda a: a * 2
g = lambda a: -a
h = lambda a: a + 1
"""
FOLDED = "f = lambda a, row: a * 2 + row\n"

# A body that is refused, what its message says to write, and a body that has that in it.
ADVICE = {
    "while_loop": (
        "return tf.while_loop(lambda a: tf.reduce_sum(a) < 50, lambda a: [a * 2], [x])[0]",
        "while condition(x): x = f(x)",
        "condition = lambda a: tf.reduce_sum(a) < 50\n" + FUNCTIONS + "{}\nreturn x",
    ),
    "cond": (
        "return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: -x)",
        "y = f(x) if condition else g(x)",
        FUNCTIONS + "condition = tf.reduce_sum(x) > 0\n{}\nreturn y",
    ),
    "case": (
        "return tf.case([(tf.reduce_sum(x) < 0, lambda: x * 2), (x[0, 0] > 0, lambda: -x)], "
        "lambda: x + 1)",
        "y = f(x) if first else g(x) if second else h(x)",
        FUNCTIONS + "first, second = tf.reduce_sum(x) < 0, x[0, 0] > 0\n{}\nreturn y",
    ),
    "switch_case": (
        "return tf.switch_case(tf.cast(x[0, 0], tf.int32), [lambda: x * 2, lambda: -x])",
        "y = f(x) if index == 0 else g(x)",
        FUNCTIONS + "index = tf.cast(x[0, 0], tf.int32)\n{}\nreturn y",
    ),
    "map_fn": (
        "return tf.map_fn(lambda a: a * 2, x)",
        "y = tf.stack([f(row) for row in x])",
        FUNCTIONS + "{}\nreturn y",
    ),
    "vectorized_map": (
        "return tf.vectorized_map(lambda a: a * 2, x)",
        "y = tf.stack([f(row) for row in x])",
        FUNCTIONS + "{}\nreturn y",
    ),
    "foldl": (
        "return tf.foldl(lambda a, row: a * 2 + row, x, x[0] * 0)",
        "for row in x: a = f(a, row)",
        FOLDED + "a = x[0] * 0\n{}\nreturn a",
    ),
    "foldr": (
        "return tf.foldr(lambda a, row: a * 2 + row, x, x[0] * 0)",
        "for row in x[::-1]: a = f(a, row)",
        FOLDED + "a = x[0] * 0\n{}\nreturn a",
    ),
    "scan": (
        "return tf.scan(lambda a, row: a * 2 + row, x, x[0] * 0)",
        "for row in x: a = f(a, row); ys = ys + [a]",
        FOLDED + "a = x[0] * 0\nys = []\n{}\ny = tf.stack(ys)\nreturn y",
    ),
    "resize": (
        "return tf.image.resize(x[None, :, :, None], [3, 4])",
        "tf.raw_ops.ResizeBilinear(images=x, size=size, half_pixel_centers=True)",
        "size = [3, 4]\nx = x[None, :, :, None]\nreturn {}",
    ),
    "print": (
        "tf.print(x)\nreturn x",
        "tf.raw_ops.PrintV2(input=tf.strings.format('{}', x))",
        "tf.raw_ops.PrintV2(input=tf.strings.format('{{}}', x))\nreturn x",
    ),
}


@pytest.mark.parametrize("name", ADVICE)
def test_what_the_message_says_compiles_and_gives_the_same(name: str) -> None:
    refused, told, better = ADVICE[name]
    with pytest.raises(CompositeSyntaxError) as error:
        define(refused)
    assert f"`{told}`" in str(error.value.msg)
    x = tf.constant([[1.5, 2.0, 3.0], [4.0, -5.0, 6.0]])
    namespace: dict[str, Any] = {"tf": tf}
    lines = "".join(f"    {line}\n" for line in refused.split("\n"))
    exec(f"def expected(x):\n{lines}", namespace)
    op = define(better.format(told))
    np.testing.assert_allclose(op(x), namespace["expected"](x), rtol=1e-6)


CUSTOM_GRADIENTS = [
    "return clipped(x)",
    "@tf.custom_gradient\ndef f(a):\n    return a, lambda up: up * 7\nreturn f(x)",
    "return tf.custom_gradient(lambda a: (a, lambda up: up * 7))(x)",
]


@pytest.mark.parametrize("lines", CUSTOM_GRADIENTS)
def test_a_custom_gradient_is_that_of_the_op(lines: str) -> None:
    with pytest.raises(CompositeSyntaxError, match=r"`@op\.gradient`, `def gradient\(op, upstream"):
        define(lines)
    op = define("return x * 2")

    @op.gradient
    def gradient(op, upstream):
        return upstream * 7

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [7.0, 7.0])


@pytest.mark.parametrize(
    "name", ["py_function(lambda a: a, [x], tf.float32)", "gradients(x, x)[0]"]
)
def test_what_has_no_twin_says_so(name: str) -> None:
    function = getattr(tf, name.partition("(")[0]).__name__
    with pytest.raises(CompositeSyntaxError) as error:
        define(f"return tf.{name}")
    told = advice.instead_of(function)
    assert told
    assert told in str(error.value.msg)
