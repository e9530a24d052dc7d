"""Python's functions of lists and numbers in a body: what Python gives, or an error with its place.

Each expression is a body; the same body as plain Python is what to compare with.
"""

from __future__ import annotations

import itertools
import linecache
import math
import struct
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from composite import Composite
from composite.compiler.source import CompositeSyntaxError

pytestmark = pytest.mark.many_cases

_numbers = itertools.count()

ATTRS = ["k: int", "r: float", "flag: bool", "s: string", "ks: list(int)", "rs: list(float)"]
NAMES = "k, r, flag, s, ks, rs"


def define(lines: str, inputs: tuple[str, ...] = (), output: str = "double") -> Any:
    """An op of the attributes above with these lines as its body."""
    name = f"PythonCalls{next(_numbers)}"
    file = f"<{name}>"
    parameters = ", ".join([one.partition(":")[0] for one in inputs] + [NAMES])
    text = "import enum\nimport numpy as np\nimport tensorflow as tf\n"
    text += f"def body({parameters}):\n" + "".join(f"    {x}\n" for x in lines.split("\n"))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "python_calls"}
    exec(compile(text, file, "exec"), namespace)
    decorate = Composite(name, inputs=list(inputs), attrs=ATTRS, outputs=[f"y: {output}"])
    return decorate(namespace["body"])


def folded(op: Any, attrs: dict[str, Any]) -> Any:
    """What an op without inputs gives, or None for an error."""
    try:
        nodes = op.expand(**attrs).function[0].node_def
    except tf.errors.InvalidArgumentError:
        return None
    assert {node.op for node in nodes} <= {"Const", "Identity"}
    return tf.make_ndarray(nodes[0].attr["value"].tensor)


def plain(op: Any, attrs: dict[str, Any]) -> Any:
    """What Python gives, or None where it raises or leaves 64 bits."""
    try:
        value = op.python_function(**attrs)
    except (ArithmeticError, TypeError, ValueError):
        return None
    array = np.asarray(value, float)
    known = isinstance(value, float) or not np.any(np.isfinite(array) & (np.abs(array) >= 2**63))
    return array if known else None


def returning(lines: str) -> str:
    """A body whose last line is this expression, made a tensor of float64."""
    *lines_, last = lines.split("\n")
    give = (
        "v if isinstance(v, float) else tf.constant(v if isinstance(v, (list, tuple)) else int(v)"
    )
    return "\n".join([*lines_, f"v = {last}", f"return {give}, tf.float64)"])


def returning_last(lines: str) -> str:
    """The body with its last `return` made one of a tensor of float64."""
    head, _, last = lines.rpartition("return ")
    return returning(head + last) if head.endswith("\n") else returning(last)


def same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return bool(a.shape == b.shape and _bits(a) == _bits(b))


def _bits(array: Any) -> list[Any]:
    # A NaN has no sign in Python.
    return ["nan" if math.isnan(x) else struct.pack("d", x) for x in array.ravel().tolist()]


SAMPLES = [
    {"k": 3, "r": 2.5, "flag": True, "s": "ab", "ks": [3, 1, 2], "rs": [0.5, -0.25]},
    {"k": -7, "r": -0.5, "flag": False, "s": "", "ks": [], "rs": []},
    {"k": 0, "r": -0.0, "flag": True, "s": "é", "ks": [0], "rs": [math.nan, 1.0]},
    {"k": 2**62, "r": math.inf, "flag": False, "s": "b", "ks": [2, 2, 1], "rs": [1.0, math.nan]},
]

EXPRESSIONS = [
    "float(k)", "float(flag)", "float(r)", "float('-inf')", "float(' 1_0.5 ')", "float(len(s))",
    "k / float(len(ks) + 1)", "int(r)", "int(k)", "int(flag)", "int(-2.9)", "int(2.9)", "int('12')",
    "int(1e18)", "int(float(k))", "bool(k)", "bool(r)", "bool(ks)", "bool(s)", "bool(())",
    "round(r)", "round(k)", "round(0.5)", "round(1.5)", "round(-2.5)", "round(2.675, 2)",
    "round(r, 1)", "round(r, ndigits=0)", "round(number=r)", "round(k, -1)", "round(25, -1)",
    "round(-35, -1)", "round(r, None)", "round(flag)", "round(1234.5, -2)", "round(k, 3)",
    "abs(k)", "abs(r)", "abs(flag)", "abs(-k)", "max(k, 2)", "min(k, 2.0)", "max(1, True)",
    "max(True, 1)", "min(r, k, 1)", "max(ks)", "min(ks, default=-1)", "max(rs)", "min(rs)",
    "max(rs, default=k)", "max(s, 'a') == 'a'", "min(0.0, r)", "min(r, 0.0)", "max((k, 1))",
    "sum(ks)", "sum(ks, k)", "sum(ks, start=r)", "sum(rs)", "sum([0.1] * 10)", "sum(range(5))",
    "sum([[1], ks], [])", "sum(((1,), (k,)), ())", "sum([1, 0.1, 1e100, k, -1e100])",
    "any(ks)", "all(ks)", "any([])", "all(())", "any([k > 0, r > 0])", "all([x > 0 for x in ks])",
    "sorted(ks)", "sorted(ks, reverse=True)", "sorted(rs[:1] + [0.25, -0.0, 0.0][:k])",
    "sorted([r, k, 1])", "sorted((3, k))", "sorted([True, 1, 0.0])[2]",
    "sorted([(k, 1), (3, 0)])[0]", "sorted('ba' + s)[0] == 'a'", "divmod(k, 3)", "divmod(-k, 4.0)",
    "divmod(k, 0)", "divmod(r, 2)", "pow(k, 2)", "pow(2, -1)", "pow(k, 3, 7)", "pow(3, 4, -5)",
    "pow(base=2, exp=5)", "pow(2, 3, None)", "pow(2, 3, 0)", "list(zip(ks, rs))[:0]",
    "[a * b for a, b in zip(ks, reversed(ks))]", "sum(reversed(ks))", "max(enumerate(ks))[0]",
    "list(reversed(range(4)))", "tuple(reversed((1, k)))", "sorted(zip(ks, ks)) == []",
    "[i for i, (a, b) in enumerate(zip(ks, ks), start=k)]", "len(list(zip()))",
    "sum([a for a in reversed([1, 2, k])])", "(1, 2) == [1, 2]", "(1, 2) != [1, 2]",
    "[1, 2] in [(1, 2)]", "(1, 2) in [(1, 2)]", "ks == list(ks)", "tuple(ks) == ks",
    "tuple(ks) == tuple(ks)", "range(3) == [0, 1, 2]", "range(3) == range(0, 3)", "(1,) + [k]",
    "[k] + (1,)", "(1, k) + (2,)", "(k,) * 2", "ks + [k]", "list((1, 2)) + [3]", "range(3) + [1]",
    "range(2) * 2", "list(range(2)) * 2", "ks[1:] + [1]", "(1, 2, k)[1:] + (4,)", "ks[1:] == ()",
    "(1, 2)[:0] == ()", "[x for x in (1, 2)] == [1, 2]", "isinstance(k, int)",
    "isinstance(flag, int)", "isinstance(r, (int, str))", "isinstance(ks, list)",
    "isinstance((1, 2), list)", "isinstance(ks + [1], tuple)", "isinstance(s, str)",
    "isinstance(k / 2, float)", "isinstance(ks, (tuple, list))", "isinstance(range(3), list)",
    "isinstance(divmod(k, 2), tuple)",
    "567 / 11140633",
    "k / 7",
    "(k + 1) / -3",
    "0 / -5",
    "9007199254740993 / 3",
    "1 / 4611686018427387905",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_known_numbers(text: str) -> None:
    op = define(returning(text))
    typed = define(f"v = {text}\nreturn isinstance(v, int) + 2 * isinstance(v, (bool, float))")
    for attrs in SAMPLES:
        expected = plain(op, attrs)
        assert same(folded(op, attrs), expected), (attrs, expected)
        if expected is not None:
            assert same(folded(typed, attrs), plain(typed, attrs)), attrs


@settings(max_examples=300, deadline=None)
@given(st.floats(), st.integers(-330, 330))
def test_round_as_python_does(number: float, digits: int) -> None:
    attrs = {**SAMPLES[0], "k": digits, "s": repr(number)}
    op = _rounding(number)
    assert same(folded(op, attrs), plain(op, attrs))


def _rounding(number: float) -> Any:
    # A float attribute has 32 bits; a constant of the body has 64.
    return define(f"return round(float('{number!r}'), k)")


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(-(2**61), 2**61), min_size=3, max_size=3),
    st.integers(-25, 3),
)
def test_integers_as_python_does(values: list[int], digits: int) -> None:
    for text in (f"round(ks[0], {digits})", "sum(ks)", "sorted(ks)", "abs(ks[0])", "int(ks[1])"):
        op = _of_text(text)
        attrs = {**SAMPLES[0], "ks": values}
        assert same(folded(op, attrs), plain(op, attrs)), text


_ops: dict[str, Any] = {}


def _of_text(text: str) -> Any:
    if text not in _ops:
        _ops[text] = define(returning(text))
    return _ops[text]


LATER = [
    "float(n)", "float(n) / 2", "int(n)", "int(n == 2)", "float(n > 1)", "round(n)", "abs(n - 9)",
    "abs(float(n) - 9.5)", "max(n, 2)", "max(2, n, 1)", "min(n, k, 5)", "max(n / 2, 1.5)",
    "max(n, 1.5)", "sum([n, 1])", "sum(x.shape)", "sum(x.shape, k)", "any([n > 7, n > 1])",
    "all([n > 1, k > 0])", "any(x.shape)", "sorted([n, 3])[0]", "divmod(n, 2)[1]",
    "divmod(n, 2)[0]", "pow(n, 2)", "pow(n, 2, 3)", "int(n / 2)", "round(n / 3, 1)", "bool(n)",
    "max(x.shape)", "min([n], default=1)", "isinstance(n, int)", "isinstance(n / 2, float)",
    "isinstance(x.shape, tf.TensorShape)", "isinstance(x, tf.Tensor)", "len(tuple(x.shape))",
    "x.shape == (n, 3)", "x.shape == [n, 3]", "tuple(x.shape) == [n, 3]", "1 if x.shape else 2",
    "1 if x[0, 0].shape else 2", "1 if x.shape[2:] else 2", "not x[0, 0].shape",
    "(x.shape + [1])[-1]", "((1,) + x.shape)[0]", "len(x.shape[:1] + (2, 3))",
    "(x.shape + [1]) == (n, 3, 1)", "x.shape[1:] == (3,)", "x.shape[1:] == [3.0]",
    "list(x.shape) == x.shape", "x.shape in [(n, 3)]",
]  # fmt: skip


@pytest.mark.parametrize("text", LATER)
def test_numbers_that_are_known_later(text: str) -> None:
    lines = (
        f"n = x.shape[0]\nv = {text}\nreturn x[0, 0] * 0 + (int(v) if isinstance(v, bool) else v)"
    )
    op = define(lines, ("x: double",))
    attrs = SAMPLES[0]
    for rows in (1, 2, 9):
        x = tf.zeros([rows, 3], tf.float64)
        expected = op.python_function(x, **attrs)
        traced = tf.function(
            lambda x: op(x, **attrs), input_signature=[tf.TensorSpec([None, 3], tf.float64)]
        )
        np.testing.assert_array_equal(op(x, **attrs), expected)
        np.testing.assert_array_equal(traced(x), expected)


TENSORS = [
    "abs(x)", "abs(-x[0])", "sum(x)", "sum([x, x])", "sum([x[0], x[1]], x[0])", "pow(x, 2)",
    "x * int(any([x[0, 0] > 0, k > 9]))", "x * int(all([x[0, 0] == 0, x[1, 1] == 0]))",
    "x * float(k)",
    "x + max(k, 1) / 2", "tf.reshape(x, [max(x.shape[0] // 2, 1), -1])",
]  # fmt: skip


@pytest.mark.parametrize("text", TENSORS)
def test_tensors(text: str) -> None:
    op = define(f"return {text}", ("x: double",))
    x = tf.constant([[1.5, -2.0, 0.0], [0.25, 4.0, -1.0]], tf.float64)
    np.testing.assert_array_equal(op(x, **SAMPLES[0]), op.python_function(x, **SAMPLES[0]))


def test_a_number_that_only_the_run_knows() -> None:
    lines = "n = 0\nwhile tf.reduce_sum(x) > 1:\n    x = x / 2\n    n += 1\n"
    op = define(
        f"{lines}return x[0] * 0 + float(n) / 2 + max(n, 1) + abs(-n) + int(n) + sum([n, n])",
        ("x: double",),
    )
    for size in (0.5, 3.0, 100.0):
        x = tf.constant([size, size], tf.float64)
        np.testing.assert_array_equal(op(x, **SAMPLES[0]), op.python_function(x, **SAMPLES[0]))


REFUSED = {
    "return float(x)": "float() of a tensor is not supported: write tf.cast(x, tf.float32)",
    "return x * int(x[0])": "int() of a tensor is not supported: write tf.cast(x, tf.int32)",
    "return round(x)": "write tf.round(x)",
    "return max(x, 1.0)": "write tf.maximum(a, b), or tf.reduce_max(x)",
    "return min(x)": "write tf.minimum(a, b), or tf.reduce_min(x)",
    "return divmod(x, 2)[0]": "write `a // b` and `a % b`",
    "return x * any(x)": "write tf.reduce_any(x)",
    "return sorted(x)": "write tf.sort(x)",
    "return x * sorted(ks, key=abs)[0]": "sorted() with a `key` is not supported",
    "return x * max(ks, key=abs)": "max() with a `key` is not supported",
    "return x * max(1, 2, default=3)": "takes a default for one argument only",
    "return x * sum(ks, begin=1)": "sum() takes no `begin`",
    "return x * round(ndigits=1)": "takes its arguments in the order number, ndigits",
    "return x * round(1.5, 1, 2)": "round() takes 1 to 2 arguments",
    "return x * divmod(1)": "divmod() takes 2 arguments",
    "return x * max()": "max() takes at least 1 arguments",
    "return x * float('one')": "could not convert string to float: 'one'",
    "return x * int('9' * 2, base=8)": "int() takes no `base`",
    "return x * int('99999999999999999999')": "does not fit in 64 bits",
    "return x * len(zip(ks, ks))": "zip() gives an iterator",
    "return x * zip(ks, ks)[0][0]": "zip() gives an iterator",
    "return x if enumerate(ks) else x * 2": "enumerate() gives an iterator",
    "return x * (zip(ks) == zip(ks))": "zip() gives an iterator",
    "return x * len(reversed(reversed(ks)))": "reversed() gives an iterator",
    "z = zip(ks, ks)\nfor a, b in z:\n    x = x + a\nfor a, b in z:\n    x = x + b\nreturn x":
        "`z` is read more than once",
    "z = zip(ks, ks)\nfor i in range(2):\n    for a, b in z:\n        x = x + a\nreturn x":
        "`z` is read more than once",
    "z = y = zip(ks, ks)\nreturn x * len(list(z))": "zip() gives an iterator",
    "z = enumerate(ks)\nf = lambda: list(z)\nreturn x * len(f())": "enumerate() gives an iterator",
    "z = [zip(ks, ks)]\nreturn x": "zip() gives an iterator",
    "def f(a, z=zip([1], [2])):\n    return a * len(list(z))\nreturn f(x)": "an iterator",
    "def f(a):\n    return zip(a, a)\nreturn x * len(f(ks))": "zip() gives an iterator",
    "return x * sum([z for z in [1, 2] if zip(ks)])": "zip() gives an iterator",
    "def f(z):\n    return len(list(z)) + len(list(z))\nreturn x * f(zip(ks))": "more than once",
    "return tf.stack(reversed([x, x]))": "reversed() gives an iterator",
    "t = (x, x)\nls = [x]\nls += [x]\nreturn ls[0]": "this would change the list in place",
    "return x * isinstance(k, complex)": "isinstance() knows int, float",
    "return x * isinstance(k, np.e)": "isinstance() knows int, float",
}  # fmt: skip


@pytest.mark.parametrize("lines", REFUSED)
def test_refused_at_decoration(lines: str) -> None:
    with pytest.raises(CompositeSyntaxError) as error:
        define(lines, ("x: double",))
    assert REFUSED[lines] in str(error.value.msg)
    assert (error.value.lineno or 0) >= 5


ONCE = [
    "z = zip(ks, rs)\nreturn sum([a * b for a, b in z])",
    "z = enumerate(ks)\npairs = list(z)\nreturn len(pairs) + len(pairs)",
    "z = reversed(ks)\ny = z\nreturn list(y)",
    "z = zip(ks, ks)\nif k > 1:\n    return 0.0\nreturn [a for a, b in z]",
    "total = 0\nfor i in range(3):\n    z = zip(ks, ks)\n    for a, b in z:\n"
    "        total += a + i\nreturn total",
    "def f(z):\n    return [b for a, b in z]\nreturn f(enumerate(ks))",
    "a, b = zip((1, 2), (k, 4))\nreturn a[1] + b[1]",
    "first, *rest = reversed([1, 2, k])\nreturn rest == [2, 1]",
    "a, *b = (1, 2, k)\nreturn b + [4]",
    "*a, b = (1, 2, k)\nreturn a == (1, 2)",
    "z, y = zip(ks), enumerate(ks)\nreturn len(list(z)) + len(list(y))",
]


@pytest.mark.parametrize("lines", ONCE)
def test_an_iterator_that_is_used_once(lines: str) -> None:
    op = define(returning_last(lines))
    for attrs in SAMPLES[:3]:
        assert same(folded(op, attrs), plain(op, attrs)), attrs


TABLE = np.ones([2])
KINDS = (int, (float, str))


def test_an_array_is_no_tensor() -> None:
    """Which of the two it is, only the call knows here, and the expansion has both as constants."""

    @Composite("PythonCallsArray", inputs=["x: double"], attrs=["k: int"], outputs=["y: double"])
    def body(x, k):
        table = TABLE if k > 0 else x
        return x * 2 if isinstance(table, tf.Tensor) else x

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"isinstance\(\) of a double array"):
        body([1.0, 2.0], k=1)
    np.testing.assert_array_equal(body([1.0, 2.0], k=0), [2.0, 4.0])


def test_types_in_nested_tuples() -> None:
    @Composite("PythonCallsKinds", inputs=["x: double"], attrs=["k: int"], outputs=["y: double"])
    def body(x, k):
        return x * 2 if isinstance(k, KINDS) and not isinstance(x.shape, KINDS) else x

    np.testing.assert_array_equal(body([1.0, 2.0], k=1), [2.0, 4.0])


IN_PLACE = [
    "ls = [ks, [1]]\na = ls[0]\na += [1]\nreturn len(ls[0])",
    "ls = ([k], [1])\na = ls[k % 2]\na *= 2\nreturn len(ls[k % 2])",
    "a = [1] if k > 1 else 2\na += [3]\nreturn 1",
    "for a in [[1], [2]]:\n    b = a\n    b += [3]\nreturn 1",
]


@pytest.mark.parametrize("lines", IN_PLACE)
def test_a_list_is_not_changed_under_another_name(lines: str) -> None:
    try:
        op = define(lines)
    except CompositeSyntaxError as error:
        assert "would change the list in place" in str(error.msg)  # noqa: PT017
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"<\w+>:\d+:\d+: this would change a"):
        op.expand(**SAMPLES[0])


def test_a_tuple_grows_as_a_new_one() -> None:
    op = define(returning("a = (1, k)\nb = a\na += (3,)\na + b"))
    assert same(folded(op, SAMPLES[0]), plain(op, SAMPLES[0]))
