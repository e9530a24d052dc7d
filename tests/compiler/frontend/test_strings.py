"""Text that a body makes: what Python makes, or an error that says where and what to write.

Each text is compared with that of the same body as plain Python. What the source shows is formatted
by the front end, and what attributes, dims and loops give by the expansion.
"""

from __future__ import annotations

import itertools
import linecache
import locale
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from composite.compiler.source import CompositeSyntaxError

_numbers = itertools.count()

ATTRS = [
    "k: int = 7", "r: float = 2.5", "flag: bool = True", "s: string = 'ab'", "t: type = DT_FLOAT",
    "ks: list(int) = [1, 2]", "ss: list(string) = ['i', 'j']", "dims: shape = { dim { size: 2 } }",
]  # fmt: skip
NAMES = "x, k, r, flag, s, t, ks, ss, dims"


def define(lines: str, *, parameters: str = NAMES, **options: Any) -> Any:
    """An op that gives a text: of a tensor and the attributes above, or as the options declare."""
    name = f"Strings{next(_numbers)}"
    file = f"<{name}>"
    text = f"import tensorflow as tf\nW = 6\nPAIR = (1, 2)\ndef body({parameters}):\n"
    text += "".join(f"    {line}\n" for line in lines.split("\n"))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "strings"}
    exec(compile(text, file, "exec"), namespace)
    declared: dict[str, Any] = {"inputs": ["x: float"], "attrs": ATTRS, "outputs": ["y: string"]}
    return Composite(name, **{**declared, **options})(namespace["body"])


def text_of(op: Any, *inputs: Any, **attrs: Any) -> str:
    nodes = op.expand(*inputs, **attrs).function[0].node_def
    assert {node.op for node in nodes} <= {"Const", "Identity"}, nodes
    constant = next(node for node in nodes if node.op == "Const")
    return bytes(tf.make_ndarray(constant.attr["value"].tensor).item()).decode()


X = tf.zeros([3, 4])

DEFAULTS: dict[str, Any] = {
    "k": 7, "r": 2.5, "flag": True, "s": "ab", "t": tf.float32, "ks": [1, 2], "ss": ["i", "j"],
    "dims": tf.TensorShape([2]),
}  # fmt: skip

TEXTS = [
    'f"{s},{ss[0]}->{ss[1]}"',
    'f"{k}" + str(k + 1) + repr(s) + ascii(s)',
    'f"{r}|{r!r}|{r:.3f}|{r:e}|{r:>{W}}|{r:>{k}.{1}f}"',
    'f"{flag}{flag:d}{None}{k:05d}{-k:+,}{k * 1000000:_}"',
    'f"{x.shape}{x.shape[0]:03}{x.shape[1:]!r}{x.shape.rank}{x.shape.as_list()}"',
    'f"{t}{t!r}{x.dtype}{tf.int32!r}"',
    'f"{ks}{ss}{(k, r)}{(s,)}{[flag, None]}{PAIR}{[]}{()}{dims}{dims!r}{[x.shape]}"',
    'f"{{{k}}}"',
    'f"{k=}"',
    '"{}-{}".format(k, s)',
    '"{1}{0}{a!r:>6}{{}}".format(k, s, a=s)',
    '"{:>{}}|{:{w}.{p}f}".format(s, 5, r, w=9, p=2)',
    '"{:{fill}{align}5}".format(s, fill="*", align="^")',
    '"%s=%d%%" % (s, k)',
    '"%d|%i|%5d|%-5d|%05d|%+d|% d" % (r, k, k, k, k, k, k)',
    '"%x|%X|%#x|%o" % (k + 20, k + 20, k + 20, k)',
    '"%e|%.2f|%g|%G|%.0f|%8.3f|%-8.1f|" % (r, r, r, r * 1e9, r, r, r)',
    '"%r|%a|%5s|%-5s|%.1s" % (s, s, s, s, s)',
    '"%s" % k',
    '"%s" % x.shape',
    '"%s" % list(ks)',
    '"%s" % "constant"',
    '",".join(ss) + "->" + s.join(["a", "b", "c"])',
    '"".join([str(i) + f"{i:02}" for i in range(k)])',
    '"-".join(s)',
    'format(k, "04d") + format(s) + format(W, ">9") + format(r, "")',
    '"plain %% %d" % 3',
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_what_python_makes(text: str) -> None:
    op = define(f"return {text}")
    assert text_of(op, X) == op.python_function(X, **DEFAULTS)
    given = {"k": -12, "r": -1536.125, "flag": False, "s": "x'y"}
    assert text_of(op, X, **given) == op.python_function(X, **{**DEFAULTS, **given})


def test_a_float_has_the_fewest_digits_that_are_read_as_it() -> None:
    op = define("return f'{2.0 ** k!r} {-(3.0 ** k)} {2.0 ** k:.25g} {2.0 ** k:.9e} {r}'")
    # At some powers of two the nearest decimal of so many digits is another number.
    for k in (-1074, -1022, -1017, -44, -24, -1, 0, 53, 89, 122, 333, 646):
        assert text_of(op, X, k=k) == op.python_function(X, **{**DEFAULTS, "k": k})


def test_the_point_is_that_of_no_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/de_DE").is_file():
        pytest.skip("no locale can be made here")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    subprocess.run(made, check=True)
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    former = locale.setlocale(locale.LC_NUMERIC)
    locale.setlocale(locale.LC_NUMERIC, "de_DE.UTF-8")
    try:
        assert locale.str(2.5) == "2,5"
        op = define("return f'{r} {r:.3f} {r:.0e} {r:.3e} {r:%} {r:,.2f}'")
        assert text_of(op, X, r=1536.125) == op.python_function(X, **{**DEFAULTS, "r": 1536.125})
    finally:
        locale.setlocale(locale.LC_NUMERIC, former)


def test_variables_of_loops_are_formatted_where_they_are_known() -> None:
    lines = (
        "text = ''\nfor i, letter in enumerate(s):\n    text = text + f'{i}{letter}'\n"
        "j = 0\nwhile j < k:\n    text = '%s/%d' % (text, j)\n    j += 1\nreturn text"
    )
    op = define(lines)
    assert text_of(op, X, k=3) == "0a1b/0/1/2" == op.python_function(X, **{**DEFAULTS, "k": 3})


def test_text_of_a_dim_waits_for_it() -> None:
    op = define("return f'{x.shape[0]:03d}{x.shape}'")
    traced = tf.function(op, input_signature=[tf.TensorSpec([None, 2])])
    for rows in (5, 12):
        assert traced(tf.zeros([rows, 2])).numpy().decode() == f"{rows:03d}({rows}, 2)"


@Composite(
    "StringsEinsum",
    inputs=["x: T", "y: T"],
    attrs=["a: string", "b: string", "c: string"],
    derived_attrs=["T: {float, double}"],
    outputs=["z: T"],
)
def contract(x: Any, y: Any, a: Any, b: Any, c: Any) -> Any:
    return tf.einsum(f"{a},{b}->{c}", x, y)


def test_an_equation_is_made_of_attributes() -> None:
    x, y = tf.random.normal([2, 3]), tf.random.normal([3, 4])
    want = tf.einsum("ij,jk->ki", x, y)
    np.testing.assert_allclose(contract(x, y, a="ij", b="jk", c="ki"), want, rtol=1e-5)
    traced = tf.function(lambda x, y: contract(x, y, a="ij", b="jk", c="ki"))
    np.testing.assert_allclose(traced(x, y), want, rtol=1e-5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = contract(x, y, a="ij", b="jk", c="ki")
    np.testing.assert_allclose(tape.gradient(z, x), tf.ones([2, 4]) @ tf.transpose(y), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('f"{x}"', "a tensor has its value only then"),
        ("str(x[0, 0])", "a tensor has its value only then"),
        ('"%s" % x', "a tensor has its value only then"),
        ('"{}".format(x)', "a tensor has its value only then"),
        ("s.format(k)", r"whose \.format\(\) is called must be written out"),
        ('"{}{}".format(k)', "is given nothing for the field `1`"),
        ('"{a.b}".format(a=k)', r"is given nothing for the field `a\.b`"),
        ('"{".format(k)', "Single '{'"),
        ('"{}".format(*ks)', "write the elements out"),
        ('"%d" % (k, k)', "more values than conversions"),
        ('"%d%d" % (k,)', "`%` has no value for `%d`"),
        ('"%d" % ((k, k) if flag else (k,))', r"write the values of `%` out"),
        ('"%c" % k', "`%c` is not supported"),
        ('"%(k)s" % k', r"`%\(` is not supported"),
        ('f"{3:q}"', "Unknown format code 'q'"),
        ("str(k, 'utf-8')", r"str\(\) takes one"),
        ("','.join(x)", "tf.strings.reduce_join"),
        ("','.join(ss, ss)", r"\.join\(\) takes one argument"),
    ],
)
def test_what_the_source_shows_to_be_wrong(text: str, message: str) -> None:
    with pytest.raises(CompositeSyntaxError, match=message) as caught:
        define(f"return {text}")
    assert caught.value.lineno == 5 and caught.value.offset is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('f"{s:d}"', "a str takes no format of numbers"),
        ('f"{k:s}"', "the type s is for a str alone"),
        ('f"{k:.2}"', "an int has no precision"),
        ('f"{r:d}"', "a float has no format of type d"),
        ('f"{k:{s}}"', "the format 'ab' is none that a body supports"),
        ('f"{ks:>9}"', "a list takes no format"),
        ('f"{k:n}"', "a type that a body does not support"),
        ('f"{k:99999}"', "above 10000"),
        ('"-".join(ks)', "item 0 is 1"),
        ("s % k", "write an f-string"),
        ("format(k, k)", "a format is a str, not 7"),
    ],
)
def test_what_the_expansion_refuses_names_the_place(text: str, message: str) -> None:
    op = define(f"return {text}")
    with pytest.raises(tf.errors.InvalidArgumentError, match=message) as caught:
        op.expand(X)
    assert "body: " in str(caught.value) or ":5:" in str(caught.value)


def test_a_number_that_only_the_run_knows_is_refused() -> None:
    lines = "i = 0\nwhile x[0, 0] < 0:\n    i += 1\n    x = x + 1\nreturn f'{i}'"
    op = define(lines)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="text is made when the op is expanded"
    ):
        op.expand(X)


@Composite("StringsInner", inputs=["x: float"], outputs=["y: float"])
def inner(x: Any) -> Any:
    return tf.tanh(x, name="inside")


@Composite("StringsNames", inputs=["x: float"], attrs=["k: int", "s: string"], outputs=["y: float"])
def named(x: Any, k: Any, s: Any) -> Any:
    for i in range(k):
        x = tf.sin(x, name=f"{s}_{i}")
        x = inner(x, name="inner_" + str(i))
    return tf.nn.relu(x, name="_".join([s, "last"]))


def test_names_of_nodes_are_made_of_what_is_known() -> None:
    def names(**attrs: Any) -> list[str]:
        return [node.name for node in named.expand(X, **attrs).function[0].node_def]

    inside = "StringsInner/inside"
    assert names(k=2, s="a") == ["a_0", inside, "a_1", f"{inside}_1", "a_last"]
    assert names(k=1, s="b") == ["b_0", inside, "b_last"]
    want = tf.nn.relu(tf.tanh(tf.sin(tf.ones([3]))))
    np.testing.assert_allclose(named(tf.ones([3]), k=1, s="a"), want, rtol=1e-6)
    with pytest.raises(CompositeSyntaxError, match="written out, or an f-string"):
        define("return tf.strings.upper(s, name=k)")


def test_messages_of_errors_take_conversions_and_formats() -> None:
    op = define("if k > 3:\n    raise ValueError(f'{s!r} {k:04d} of {x.shape}')\nreturn s")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'ab' 0007 of \(3, 4\)"):
        op.expand(X)
    assert text_of(op, X, k=1) == "ab"


FLOAT_SPECS = ["", *"eEfFgG%"]


def specification(random_: random.Random, kind: str) -> str:
    fill = random_.choice(["", "<", ">", "^", "*<", "x^", "é>", *(["="] if kind != "s" else [])])
    sign = "" if kind == "s" else random_.choice(["", "", "+", "-", " "])
    zero = random_.choice(["", "", "0"])
    width = random_.choice(["", "1", "7", "12", "20"])
    types = {"s": ["", "s"], "d": ["", "d", "b", "o", "x", "X", "e", "f", "%"], "f": FLOAT_SPECS}
    type_ = random_.choice(types[kind])
    grouping = "" if kind == "s" else random_.choice(["", "", "_", ","])
    point = random_.choice(["", "", ".0", ".1", ".3", ".17"])
    alternate = "#" if type_ in [*"boxXeEfF"] and random_.random() < 0.3 else ""
    return fill + sign + alternate + zero + width + grouping + point + type_


def drawn(random_: random.Random) -> tuple[str, Any, str]:
    kind = random_.choice("sdf")
    if kind == "s":
        value: Any = "".join(random_.choices("ab'\"\\\n é☃", k=random_.randrange(6)))
    elif kind == "d":
        value = random_.choice([0, 1, -1, 255, -(2**63), 2**63 - 1, random_.randrange(-9999, 9999)])
    else:
        powers = 10.0 ** random_.randrange(-20, 22)
        value = random_.choice([0.0, -0.0, 1.0, 0.1, 1e16, 1e-5, 123.456, float("inf"), -powers])
        value = random_.choice([value, random_.uniform(-9, 9) * powers, float("nan")])
        value = float(np.float32(value))  # as an attribute holds it
    return {"s": "s", "d": "k", "f": "r"}[kind], value, specification(random_, kind)


def test_formats_that_are_drawn_are_those_of_python() -> None:
    """A specification in an attribute: all of them go through one op a kind of value."""
    random_ = random.Random(0)
    ops: dict[str, Any] = {}
    for name, declared in {"s": "string", "k": "int", "r": "float"}.items():
        attrs = [f"{name}: {declared}", "spec: string"]
        line = f"return format({name}, spec) + '|' + str({name}) + '|' + ascii([{name}])"
        ops[name] = define(line, parameters=f"{name}, spec", inputs=[], attrs=attrs)
    refused = 0
    for _ in range(600):
        name, value, spec = drawn(random_)
        given = {name: value, "spec": spec}
        try:
            want = ops[name].python_function(**given)
        except ValueError:
            refused += 1
            with pytest.raises(tf.errors.InvalidArgumentError):
                ops[name].expand(**given)
            continue
        assert text_of(ops[name], **given) == want, given
    assert 0 < refused < 400
