"""What decorating costs before registration: source to digest, after the first op of a process.

Processor time, the best of several runs. The bounds are those of the project, not of this machine:
see tests/yardstick.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler.frontend import callables, specialization
from composite.compiler.frontend.body import body_of
from tests.yardstick import best_of

Define = Callable[..., Any]

pytestmark = pytest.mark.timed

ACT = 'name: "act" type: "string" default_value { s: "" }'
K = 'name: "k" type: "int" default_value { i: 0 }'

DENSE = """
def body(input_, filter_, bias, act):
    y = tf.raw_ops.MatMul(a=input_, b=filter_, transpose_b=True)
    y = tf.raw_ops.BiasAdd(value=y, bias=bias)
    if act == "RELU":
        return tf.nn.relu(y)
    elif act == "RELU6":
        return tf.raw_ops.Relu6(features=y)
    elif act == "TANH":
        return tf.tanh(y)
    return y
"""


WITH_LIBRARY = """
def activation(y, act):
    if act == "RELU":
        return tf.nn.relu(y)
    elif act == "RELU6":
        return tf.nn.relu6(y)
    elif act == "TANH":
        return tf.tanh(y)
    return y

def body(input_, filter_, bias, act):
    y = tf.nn.bias_add(tf.matmul(input_, filter_, transpose_b=True), bias)
    return activation(y, act)
"""


def test_a_dense_layer_in_20_ms(compile_body: Any, define: Any, op_def: Any) -> None:
    declared = op_def("Dense", ["input_: T", "filter_: T", "bias: T"], ["o: T"], [ACT])
    body = define(DENSE)
    compile_body(body, declared)
    assert best_of(5, lambda: compile_body(body, declared)) < 0.020


def test_a_dense_layer_of_library_functions_and_a_helper_in_20_ms(
    compile_body: Any, define: Any, op_def: Any
) -> None:
    declared = op_def("Dense", ["input_: T", "filter_: T", "bias: T"], ["o: T"], [ACT])
    body = define(WITH_LIBRARY)
    compile_body(body, declared)
    assert best_of(5, lambda: compile_body(body, declared)) < 0.020


def test_200_lines_in_300_ms(compile_body: Any, define: Any, op_def: Any) -> None:
    block = [
        "if k == {i}:",
        "    y = tf.raw_ops.MatMul(a=y, b=x, transpose_b=k > {i})",
        "elif k > {i} and k != 3:",
        "    y = y * 2 + x / (1 + y)",
        "z = tf.raw_ops.Tanh(x=y) if k < {i} else y",
        "if k == -{i}:",
        "    return z",
        "y = tf.sin(y) - z @ x",
    ]
    lines = ["y = x", *(line.format(i=i) for i in range(25) for line in block), "return y"]
    body = define("def body(x, k):\n" + "".join(f"    {line}\n" for line in lines))
    declared = op_def("Long", attrs=[K])
    compile_body(body, declared)
    assert best_of(3, lambda: compile_body(body, declared)) < 0.300


def test_200_lines_of_library_functions_in_300_ms(
    compile_body: Any, define: Define, op_def: Any
) -> None:
    block = [
        "y = tf.nn.gelu(y) + tf.nn.softmax(x, axis=-1)",
        "mean, variance = tf.nn.moments(y, [-1], keepdims=True)",
        "y = tf.nn.batch_normalization(y, mean, variance, None, None, 1e-{i})",
        "y = tf.matmul(y, x, transpose_b=True) * {i}.5",
        "y = y - tf.reduce_mean(tf.abs(y), axis=1, keepdims=True)",
        "y = tf.concat([y[:, :k], tf.expand_dims(x[:, {i}], 1)], axis=1)",
        "y = tf.where(y > {i}.0, tf.zeros_like(y), tf.clip_by_value(y, 0.0, 1.0))",
        "y = tf.transpose(tf.reshape(y, tf.shape(x)))",
    ]
    lines = ["y = x", *(line.format(i=i % 9) for i in range(25) for line in block), "return y"]
    text = "def body(x, k):\n" + "".join(f"    {line}\n" for line in lines)
    declared = op_def("Long", attrs=[K])
    body = define(text)

    def first_time() -> None:
        """Compile as if no function of the library had been read yet."""
        specialization.forget()
        callables._of_library.cache_clear()
        body_of.cache_clear()
        compile_body(body, declared)

    compile_body(body, declared)
    assert best_of(3, lambda: compile_body(body, declared)) < 0.300
    # Reading some thirty functions of the library comes on top, once in a process.
    assert best_of(3, first_time) < 0.450
