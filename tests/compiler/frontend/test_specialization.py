"""A call of the library that is built again gives the program that its translation gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from composite.compiler.frontend import inline, specialization
from composite.compiler.source import CompositeSyntaxError

Define = Callable[..., Any]
OpDef = Callable[..., Any]

ATTRS = [
    'name: "k" type: "int" default_value { i: 0 }',
    'name: "act" type: "string" default_value { s: "" }',
]

LINES = {
    "the same again": ["y = tf.nn.gelu(x)", "z = tf.nn.gelu(w)"],
    "other constants": ["y = tf.reduce_sum(x, axis={})" for _ in range(3)],
    "one, True and 1.0": [
        "y = tf.reduce_sum(x, 1, keepdims=1)",
        "z = tf.reduce_sum(x, 1, keepdims=True)",
        "y = y + tf.add(z, 1)",
        "z = z + tf.add(y, 1.0)",
        "y = y * tf.add(0.0, z) * tf.add(-0.0, z)",
    ],
    "other floats, and zero": [
        "y = tf.nn.leaky_relu(x, 0.2) + tf.nn.leaky_relu(w, 0.3) + tf.nn.leaky_relu(w, 0.0)",
        "y = y + tf.norm(x, 1.5, 0) + tf.norm(w, 2.0, 0) + tf.norm(x, 1.0, 0) + tf.norm(x, 2, 0)",
        "z = tf.clip_by_norm(x, 0.0) + tf.clip_by_norm(w, -1.5) + tf.clip_by_norm(x, 2.5)",
        "z = tf.clip_by_value(z, -0.0, 1.5) + tf.clip_by_value(y, 0.0, -1.5) + tf.ones([2]) * 0.5",
        "z = tf.fill([2, 2], 1.5) + tf.fill([2, 2], 2.5) + tf.nn.elu(z) + tf.nn.swish(w, 0.5)",
        "z = z + tf.nn.swish(x, 0.25) + tf.nn.l2_normalize(x, 1, 1e-3) + tf.nn.l2_normalize(w, 1)",
    ],
    "lists of several lengths": [
        "y = tf.reduce_mean(x, [0]) + tf.reduce_mean(w, [0, 1])",
        "z = tf.squeeze(tf.reduce_max(x, [1], keepdims=True), [])",
        "z = tf.squeeze(tf.reduce_max(w, [1], keepdims=True), [1])",
    ],
    "an argument left out, or None": [
        "y = tf.reduce_sum(x)",
        "z = tf.reduce_sum(w, axis=None)",
        "z = z + tf.reduce_sum(w, axis=0)",
    ],
    "an attribute and a constant": [
        "y = tf.reduce_sum(x, k)",
        "z = tf.reduce_sum(x, 1)",
        "z = z + tf.reduce_sum(x, k + 0) + tf.reduce_sum(x, 1 + 0)",
    ],
    "one tensor twice, and two": [
        "y = tf.where(x > 0, x, x)",
        "z = tf.where(w > 0, x, w)",
        "z = tf.where(x > 0, w, w) + tf.tensordot(x, x, 1) + tf.tensordot(x, z, 1)",
    ],
    "shapes": [
        "y = tf.reshape(x, x.shape) + tf.zeros(x.shape) + tf.ones(w.shape)",
        "z = tf.broadcast_to(w, x.shape) + tf.reshape(w, x.shape) + tf.reshape(w, [2, x.shape[1]])",
    ],
    "dtypes": [
        "y = tf.cast(tf.cast(x, tf.int32), x.dtype)",
        "z = tf.cast(tf.cast(x, tf.float64), tf.float32) + tf.cast(w, y.dtype)",
    ],
    "several results": [
        "y, z = tf.nn.moments(x, [0])",
        "m, v = tf.nn.moments(w, [0])",
        "z = z + m * v + tf.nn.moments(w, [1], keepdims=k == 1)[0]",
        "a, b = tf.split(x, 2, axis=1)",
        "c, d = tf.split(w, 2, axis=1)",
        "z = z + tf.stack([a, b, c, d])[0]",
    ],
    "numbers and tensors": [
        "y = tf.maximum(x, 0) + tf.maximum(w, 0.0) + tf.maximum(x, w)",
        "z = tf.clip_by_value(x, 0, 1) + tf.clip_by_value(w, x, 1) + tf.clip_by_value(w, 0, 1)",
    ],
    "in branches and loops": [
        "y = tf.nn.softmax(x)",
        "if k > 1:",
        "    y = tf.nn.softmax(y) + tf.nn.moments(y, [k])[0]",
        "elif act == 'RELU':",
        "    y = tf.nn.moments(x, [k])[0]",
        "for i in range(k):",
        "    y = tf.nn.softmax(y) + tf.reduce_sum(y, i)",
        "z = tf.add_n([tf.nn.softmax(y + j) for j in range(3)])",
    ],
    "in a helper": [
        "def twice(t, axis):",
        "    return tf.nn.softmax(tf.nn.softmax(t, axis), axis)",
        "y = twice(x, 0)",
        "z = twice(w, 0) + twice(x, 1) + tf.nn.softmax(x, 0)",
    ],
    "what a function of the library calls": [
        "y = tf.nn.log_softmax(x) + tf.nn.softmax(w) + tf.nn.log_softmax(w)",
        "z = tf.linalg.normalize(x, axis=0)[0] + tf.norm(w, axis=0)",
        "z = tf.linalg.normalize(w, axis=0)[0] + tf.norm(x, axis=0, keepdims=True)",
    ],
    "arrays of the module": [
        "y = tf.matmul(TABLE, x) + tf.matmul(TABLE, w) + tf.nn.softmax(TABLE)",
        "z = tf.matmul(OTHER, x) + tf.nn.softmax(OTHER) + tf.nn.softmax(x) + tf.nn.softmax(w)",
    ],
    "names of nodes": ["y = tf.reduce_sum(x, 0, name='a')", "z = tf.reduce_sum(w, 0, name='b')"],
    "raising": [
        "tf.debugging.Assert(k > 1, [x])",
        "tf.debugging.Assert(k > 1, [w])",
        "y = tf.clip_by_norm(x, k)",
        "z = tf.clip_by_norm(w, k) + tf.saturate_cast(w, x.dtype) + tf.saturate_cast(x, w.dtype)",
    ],
}


def body_of(lines: list[str]) -> str:
    numbered = [
        line.format(index) if line.count("{}") else line for index, line in enumerate(lines)
    ]
    inside = ["y = z = x", *numbered, "return y + z"]
    return "\n".join(["def body(x, w, k, act):", *(f"    {line}" for line in inside), ""])


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that are built again, with none remembered from before."""
    found: list[Any] = []
    build = specialization.Specialization.build

    def noted(self: Any, *arguments: Any) -> Any:
        found.append(self)
        return build(self, *arguments)

    monkeypatch.setattr(specialization.Specialization, "build", noted)
    specialization.forget()
    return found


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES.keys())
def test_the_program_is_that_of_the_translation(  # noqa: PLR0917
    lines: list[str],
    built: list[Any],
    compile_body: Any,
    define: Define,
    op_def: OpDef,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = op_def("Test", ["x: float", "w: float"], ["y: float"], ATTRS)
    body = define(body_of(lines), TABLE=np.eye(2), OTHER=np.ones([2, 2]))
    first, second = compile_body(body, declared), compile_body(body, declared)
    assert built
    monkeypatch.setattr(specialization.Call, "find", lambda _: None)
    translated = compile_body(body, declared)
    for one in (first, second):
        assert one.text == translated.text
        assert one.program == translated.program


def test_equal_calls_are_translated_once(
    built: list[Any], compile_body: Any, define: Define
) -> None:
    compile_body(define("def body(x, w):\n    return tf.nn.gelu(x) + tf.nn.gelu(w)\n"))
    assert len(built) == 1


def test_an_error_is_that_of_its_own_call(
    built: list[Any], compile_body: Any, define: Define
) -> None:
    text = "def body(x):\n    y = tf.cast(x, x.dtype)\n    return tf.cast(y, {dtype})\n"
    compile_body(define(text.format(dtype="y.dtype")))
    with pytest.raises(CompositeSyntaxError) as raised:
        compile_body(define(text.format(dtype="y")))
    assert raised.value.lineno == 3
    assert built


def test_calls_that_are_built_again_count(
    built: list[Any], compile_body: Any, define: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "MOST_CALLS", 20)
    lines = "".join(f"    x = tf.nn.gelu(x) * {i}.5\n" for i in range(20))
    with pytest.raises(CompositeSyntaxError) as raised:
        compile_body(define(f"def body(x):\n{lines}    return x\n"))
    assert built
    assert "is the call number 21 that is inlined into one op" in str(raised.value)


def test_few_are_kept(
    built: list[Any], compile_body: Any, define: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(specialization, "MOST", 2)
    for function in ("gelu", "softmax", "silu", "gelu"):
        compile_body(define(f"def body(x):\n    return tf.nn.{function}(x)\n"))
        assert len(specialization._made) == 2
