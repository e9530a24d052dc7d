"""Conditions that tensors decide: `if`, `while` and their like become If and While of TensorFlow.

The same line means what Python does with eager tensors: run eagerly, in a tf.function, with shapes
that are known, unknown or of unknown rank, and under a gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.conftest import RunPython

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

# Bodies of `def body(x, y, k)`: x and y are tensors of shape [4, 3], k an int.
BODIES = {
    "if": "if tf.reduce_sum(x) > 0:\n    z = x * 2\nelse:\n    z = y\nreturn z + 1",
    "no_else": "if tf.reduce_sum(x) > 0:\n    x = x * y\nreturn x - y",
    "elif": "s = tf.reduce_sum(x)\nif s > 1:\n    z = x\nelif s > -1:\n    z = y\nelse:\n"
    "    z = x + y\nreturn z",
    "early_return": "if tf.reduce_max(x) > 0.5:\n    return x\nz = x * y\n"
    "if tf.reduce_sum(y) > 0:\n    return z\nreturn -z",
    "ternary": "return x if tf.reduce_sum(x) > 0 else y * 2",
    "number_on_one_path": "z = 0\nif tf.reduce_sum(x) > 0:\n    z = x\nreturn z + y",
    "numbers": "n = 1\nif tf.reduce_sum(x) > 0:\n    n = k + 2\nreturn x * n + n // 2",
    "int_or_float": "n = 2\nif tf.reduce_sum(x) > 0:\n    n = 0.5\nreturn x * n",
    "bools": "b = tf.reduce_sum(x) > 0\nflag = False\nif b:\n    flag = k > 0\n"
    "if flag:\n    return x\nreturn y",
    "and": "if tf.reduce_sum(x) > 0 and tf.reduce_sum(y) > 0:\n    return x\nreturn y",
    "or": "if tf.reduce_sum(x) > 0 or k > 2 or tf.reduce_sum(y) > 0:\n    return x\nreturn y",
    "not": "if not tf.reduce_sum(x) > 0:\n    return x\nreturn y",
    "chained": "if -1 < tf.reduce_sum(x) < 1:\n    return x\nreturn y",
    "number_as_truth": "if tf.reduce_sum(tf.sign(x)):\n    return x\nreturn y",
    "one_element": "if x[:1, 0] > 0:\n    return x\nreturn y",
    "attribute_or_tensor": "c = tf.reduce_sum(x) > 0 if k > 1 else k > 0\nif c:\n    x = y\n"
    "return x",
    "lists": "p = [x, 1]\nif tf.reduce_sum(x) > 0:\n    p = [y, 2]\nz, n = p\nreturn z * n",
    "same_on_both": "act = 'a'\nn = 3\nif tf.reduce_sum(x) > 0:\n    act = 'a'\n    n = 3\n"
    "    x = y\nif act == 'a' and n == 3:\n    return x\nreturn -x",
    "nested": "if tf.reduce_sum(x) > 0:\n    if tf.reduce_sum(y) > 0:\n        z = x\n    else:\n"
    "        z = y\n    z = z * 2\nelse:\n    z = x - y\nreturn z",
    "in_a_loop": "for i in range(3):\n    if tf.reduce_sum(x) > i:\n        x = x - y\nreturn x",
    "shapes": "if tf.reduce_sum(x) > 0:\n    z = x[:2]\nelse:\n    z = x\n"
    "return tf.reduce_sum(z) + y",
    "helper": "return clipped(x, y)",
    "lambda": "f = lambda a: a if tf.reduce_sum(a) > 0 else -a\nreturn f(x) + f(y)",
    "library": "if tf.reduce_sum(x) > 0:\n    return tf.nn.gelu(x)\nreturn tf.nn.softplus(y)",
    "while": "while tf.reduce_sum(x * x) > 1:\n    x = x / 2\nreturn x",
    "while_counts": "n = 0\nwhile tf.reduce_sum(x * x) > 1:\n    x = x / 2\n    n += 1\n"
    "return x + n",
    "while_makes_the_same": "n = 0\nz = y\nwhile tf.reduce_sum(x * x) > 1:\n    n = k\n    z = y\n"
    "    x = x / 2\nelse:\n    n = k\nwhile tf.reduce_sum(x * x) > 0.1:\n    n = k\n    x = x / 2\n"
    "return x + z if n == k else x @ y",
    "while_number_to_tensor": "total = 0\nn = 0\nwhile tf.reduce_sum(x * x) > 1:\n"
    "    total = total + x\n    x = x / 2\n    n = n + 1\nreturn total + y",
    "while_break": "n = 0\nwhile True:\n    x = x / 2\n    n = n + 1\n"
    "    if tf.reduce_sum(x * x) < 1:\n        break\nreturn x * n",
    "while_continue": "n = 0\nwhile n < 6:\n    n = n + 1\n    if tf.reduce_sum(x) > n:\n"
    "        continue\n    x = x + 0.5\nreturn x",
    "while_else": "n = 0\nwhile tf.reduce_sum(x * x) > 1:\n    x = x / 2\n    n = n + 1\n"
    "    if n > 3:\n        break\nelse:\n    x = x + 1\nreturn x",
    "while_return": "n = 0\nwhile tf.reduce_sum(x * x) > 0.1:\n    x = x / 2\n    n = n + 1\n"
    "    if tf.reduce_sum(x) < 0:\n        return y * n\nreturn x",
    "for_break": "for i in range(6):\n    if tf.reduce_sum(x * x) < 1:\n        break\n"
    "    x = x / (i + 2)\nreturn x",
    "for_return": "for i in range(6):\n    if tf.reduce_sum(x * x) < 1:\n        return x + i\n"
    "    x = x / 2\nreturn y",
    "for_else": "for i in range(3):\n    if tf.reduce_sum(x * x) < 1:\n        break\n"
    "    x = x / 2\nelse:\n    x = x * 100\nreturn x",
    "for_rows": "for i in range(4):\n    if x[i, 0] > 0:\n        break\n"
    "    y = y + x[i]\nreturn y",
    "for_list_of_tensors": "for z in [x, y, x * y]:\n    if tf.reduce_sum(z) > 0:\n        break\n"
    "    x = x - z\nreturn x",
    "for_list_of_other_shapes": "for z in [x, y[:1], y[0], (x * y)[:, :1]]:\n"
    "    if tf.reduce_sum(z) > 0:\n        break\n    x = x - z\nreturn x",
    "item_of_other_shape": "n = -3\nif tf.reduce_sum(x) > 0:\n    n = 1\n"
    "return tf.reduce_sum([x, y[:2], y[0]][n]) + x",
    "for_list_of_numbers": "for n in [3, 1, 4]:\n    if tf.reduce_sum(x) > n:\n        break\n"
    "    x = x + n\nreturn x",
    "nested_while": "n = 0\nwhile tf.reduce_sum(x * x) > 1:\n    z = x\n"
    "    while tf.reduce_sum(z * z) > 0.5:\n        z = z / 3\n        n = n + 1\n"
    "    x = x / 2 + z * 0.01\nreturn x * n",
    "swap": "a, b = x, y\nwhile tf.reduce_sum(a * a) > 1:\n    a, b = b / 2, a / 2\nreturn a - b",
    "carried_list": "p = [x, y]\nwhile tf.reduce_sum(p[0] * p[0]) > 1:\n"
    "    p = [p[1] / 2, p[0] / 2]\nreturn p[0] - p[1]",
    "unchanged": "z = y\nwhile tf.reduce_sum(x * x) > 1:\n    if k > 100:\n        z = x\n"
    "    x = x / 2\nreturn x + z",
    "growing": "n = 0\nwhile tf.reduce_sum(x * x) < 50:\n    x = tf.concat([x, x], 0)\n"
    "    n = n + 1\nreturn tf.reduce_sum(x, 0) + y + n",
    "range_of_a_tensor": "for i in range(tf.cast(tf.reduce_sum(tf.sign(x)), tf.int32) + 3):\n"
    "    y = y + i\nreturn y",
    "assert": "assert k < 100, 'k is large'\nassert tf.reduce_sum(x * x) >= 0\nreturn x",
    "raise": "if tf.reduce_sum(x * x) < 0:\n    raise ValueError('negative')\nreturn x + y",
    "captured_constants": "n = 7\nif tf.reduce_sum(x) > 0:\n    return x * n + k\nreturn y * k",
    "dims": "if tf.reduce_sum(x) > 0:\n    return x * x.shape[0]\nreturn y * y.shape[-1]",
}

HEAD = """
import tensorflow as tf


def clipped(a, b):
    if tf.reduce_sum(a) > 0:
        return a * 2
    if tf.reduce_sum(b) > 0:
        return b
    return a - b


def body(x, y, k):
    '''Do it.'''
"""

Make = Callable[[str], Any]

_numbers = itertools.count()


@pytest.fixture
def make(tmp_path: Path) -> Make:
    made: dict[str, Any] = {}  # the last op, by the name that a body may call it

    def make_(lines: str) -> Any:
        text = HEAD + "".join(f"    {line}\n" for line in lines.split("\n"))
        path = tmp_path / "conditions.py"
        path.write_text(text, encoding="utf-8")
        namespace: dict[str, Any] = {"__name__": "conditions", **made}
        exec(compile(text, str(path), "exec"), namespace)
        decorate = composite.Composite(
            f"TensorCondition{next(_numbers)}",
            inputs=["x: T", "y: T"],
            attrs=["k: int"],
            derived_attrs=["T: {float, double}"],
            outputs=["o: T"],
        )
        made["inner"] = decorate(namespace["body"])
        return made["inner"]

    return make_


def samples(seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    return [tf.constant(random.standard_normal([4, 3]) + shift, tf.float64) for shift in (0, 0.1)]


CASES = [(0, 1), (1, 3), (2, 0), (3, 2)]


@pytest.mark.parametrize("name", BODIES)
def test_eager(make: Make, name: str) -> None:
    op = make(BODIES[name])
    for seed, k in CASES:
        x, y = samples(seed)
        for sign in (1.0, -1.0):
            expected = op.python_function(x * sign, y, k)
            np.testing.assert_allclose(op(x * sign, y, k=k), expected, rtol=1e-12)


SPECS = {"known": [4, 3], "partly": [None, 3], "rank": None}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", BODIES)
def test_traced(make: Make, name: str, spec: str) -> None:
    op = make(BODIES[name])
    given = tf.TensorSpec(SPECS[spec], tf.float64)
    called = tf.function(lambda x, y: op(x, y, k=1), input_signature=[given] * 2)
    for seed, _ in CASES[:2]:
        x, y = samples(seed)
        for sign in (1.0, -1.0):
            result = called(x * sign, y)
            np.testing.assert_allclose(result, op.python_function(x * sign, y, 1), rtol=1e-12)
            inferred = called.get_concrete_function().output_shapes
            assert inferred.is_compatible_with(result.shape)


# In these the gradient does not run through a tensor that changes its shape in a loop, or has none.
DIFFERENTIABLE = [
    name for name in BODIES if name not in ("growing", "range_of_a_tensor", "number_as_truth")
]


def gradients(function: Callable[..., Any], x: Any, y: Any) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        result = function(x, y)
    found = tape.gradient(result, [x, y], unconnected_gradients="zero")
    return [np.asarray(one) for one in found]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient(make: Make, name: str) -> None:
    op = make(BODIES[name])

    for seed, k in CASES[:2]:
        ways = [
            lambda x, y, k=k: op.python_function(x, y, k),
            lambda x, y, k=k: op(x, y, k=k),
            tf.function(lambda x, y, k=k: op(x, y, k=k)),
        ]
        expected, *found = (gradients(way, *samples(seed)) for way in ways)
        for one in found:
            for a, b in zip(one, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


ERRORS = {
    "z = None\nif tf.reduce_sum(x) > 0:\n    z = x\nreturn z": (
        "`z` is a double tensor on one path and None on another"
    ),
    "z = x\nif tf.reduce_sum(x) > 0:\n    z = tf.cast(x, tf.float16)\nreturn tf.cast(z, x.dtype)": (
        "`z` is a half tensor on one path and a double tensor on another"
    ),
    "act = 'a'\nif tf.reduce_sum(x) > 0:\n    act = 'b'\nreturn x if act == 'a' else y": (
        "`act` is 'b' on one path and 'a' on another"
    ),
    "zs = [x]\nif tf.reduce_sum(x) > 0:\n    zs = [x, y]\nreturn zs[0]": (
        "lists must have one length"
    ),
    "zs = []\nwhile tf.reduce_sum(x * x) > 1:\n    zs = zs + [x]\n    x = x / 2\n"
    "return x + len(zs)": ("`zs` is [] before a loop that a tensor decides"),
    "z = None\nwhile tf.reduce_sum(x * x) > 1:\n    z = x\n    x = x / 2\nreturn z": (
        "`z` is None on one path and a double tensor on another"
    ),
    "if x > 0:\n    return x\nreturn y": "the truth of a tensor of 12 elements is ambiguous",
    "n = 0\nif tf.reduce_sum(x) > 0:\n    n = 1\n"
    "return tf.raw_ops.Pack(values=[x, y], axis=n)[0]": (
        "the result of StatelessIf is a tensor, known only when the op runs"
    ),
    "while tf.reduce_sum(y) < 9:\n    y = y[:k] + 9 if x.shape == y.shape else y + 9\nreturn y": (
        "not yet: dim 0 of what a loop carries is not known, even when the op runs"
    ),
    "if tf.reduce_sum(x) < 9:\n    y = y[:2]\nreturn y * 2 if x.shape == y.shape else y": (
        "not yet: dim 0 of the result of StatelessIf is not known, even when the op runs"
    ),
}


@pytest.mark.parametrize("lines", ERRORS)
def test_errors_at_expansion(make: Make, lines: str) -> None:
    op = make(lines)
    x, y = samples(0)
    with pytest.raises(tf.errors.OpError, match=r"conditions\.py:\d+:\d+: ") as raised:
        op(x * 3, y, k=0)
    assert ERRORS[lines] in str(raised.value)


def test_an_assert_on_a_tensor_raises_when_the_op_runs(make: Make) -> None:
    op = make("assert tf.reduce_min(x) > 0, 'x must be positive'\nreturn x + y")
    x, y = samples(0)
    assert op.op_def.is_stateful
    np.testing.assert_array_equal(op(tf.abs(x), y, k=0), tf.abs(x) + y)
    for call in (op, tf.function(lambda x, y, k: op(x, y, k=k))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="x must be positive") as raised:
            call(x, y, k=0)
        assert "conditions.py:15" in str(raised.value)


def test_an_assert_without_a_message_says_its_test(make: Make) -> None:
    op = make("assert k in (1, 2)\nreturn x + y")
    assert not op.op_def.is_stateful
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"AssertionError: k in \(1, 2\)"):
        op(*samples(0), k=3)


def test_an_assert_whose_op_nobody_reads_runs(make: Make) -> None:
    op = make("assert tf.reduce_min(x) > 0\nreturn x")

    @tf.function
    def called(x: Any) -> Any:
        op(x, x, k=0)
        return x

    with pytest.raises(tf.errors.InvalidArgumentError, match="reduce_min"):
        called(tf.constant([-1.0]))


def test_the_ops_are_those_of_tensorflow(make: Make) -> None:
    op = make(BODIES["while_break"])
    x, y = samples(0)
    library = op.expand(x, y, k=0)
    nodes = {node.op for function in library.function for node in function.node_def}
    assert {"StatelessWhile", "StatelessIf"} <= nodes


def test_starred_assignment(make: Make) -> None:
    op = make("a, *b, c = [x, y, x * y, k]\n*d, e = b\nreturn a * c + d[0] - e + len(b)")
    x, y = samples(0)
    np.testing.assert_allclose(op(x, y, k=3), op.python_function(x, y, 3))
    short = make("a, *b, c = [x][: k + 1]\nreturn a + c")
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be unpacked"):
        short(x, y, k=0)


def test_other_shapes_are_other_results(make: Make) -> None:
    op = make("while tf.reduce_sum(x * x) > 1:\n    x = x[:2] / 2\nreturn x")
    called = tf.function(lambda x: op(x, x, k=0))
    for shape in ([4, 3], [2, 3], [3, 3], [1, 3]):
        x = tf.ones(shape, tf.float64)
        np.testing.assert_array_equal(called(x), op.python_function(x, x, 0))
        np.testing.assert_array_equal(op(x, x, k=0), op.python_function(x, x, 0))


def test_a_saved_model(make: Make, tmp_path: Path) -> None:
    op = make(BODIES["while_return"])
    module = tf.Module()
    spec = tf.TensorSpec([None, 3], tf.float64)
    module.f = tf.function(lambda x, y: op(x, y, k=1), input_signature=[spec] * 2)
    tf.saved_model.save(module, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    x, y = samples(2)
    np.testing.assert_allclose(loaded.f(x, y), op.python_function(x, y, 1), rtol=1e-12)


def test_other_composites_in_a_branch(make: Make) -> None:
    make(BODIES["early_return"])
    op = make("if tf.reduce_sum(x) > 0:\n    return inner(x, y, k=k) + 1\nreturn y")
    x, y = samples(1)
    for sign in (1.0, -1.0):
        expected = op.python_function(x * sign, y, 2)
        np.testing.assert_allclose(op(x * sign, y, k=2), expected, rtol=1e-12)


SINGLE = """
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
from composite import Composite

@Composite("CountsUp", inputs=["x: float"], attrs=["n: int"], outputs=["o: float"])
def counts_up(x, n):
    '''Count.'''
    while x < n:
        x = x + 1
    return x

zero = tf.constant(0.0)
print(float(counts_up(zero, n=100)), float(tf.function(lambda x: counts_up(x, n=100))(zero)))
"""


def test_one_thread_is_enough(run_python: RunPython) -> None:
    assert run_python(SINGLE).stdout.split() == ["100.0", "100.0"]


def test_a_message_tells_shapes(make: Make) -> None:
    op = make("if k < 0:\n    raise ValueError(f'{x.shape} {y.shape[1]} {k}')\nreturn x + y")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"ValueError: \(4, 3\) 3 -1"):
        op(*samples(0), k=-1)
    spec = tf.TensorSpec([None], tf.float64)
    traced = tf.function(lambda x, y: op(x, y, k=-1), input_signature=[spec, spec])
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        traced.get_concrete_function()
