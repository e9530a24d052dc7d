"""Attributes of every type, in eager calls, in functions, and in models that were saved."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
ROW = np.array([10.0, 20.0, 30.0], np.float32)

_names = (f"TestAttribute{number}" for number in itertools.count())


@pytest.fixture(autouse=True)
def _no_kernels() -> Iterator[None]:
    with composite.options(backend="tf"):
        yield


def defined(folder: Path, declared: str, body: str, output: str = "y: float") -> Any:
    """Make an op of `x: float` and the attribute k; its body is given."""
    name = next(_names)
    file = folder / f"{name}.py"
    file.write_text(
        "import tensorflow as tf\n\n\ndef body(x, k):\n"
        + textwrap.indent(textwrap.dedent(body).strip(), "    ")
        + "\n"
    )
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    return Composite(name, inputs=["x: float"], attrs=[f"k: {declared}"], outputs=[output])(
        namespace["body"]
    )


def traced(op: Any, value: Any, *signature: tf.TensorSpec) -> Any:
    return tf.function(lambda x: op(x, k=value), input_signature=signature or None)


def same(results: Any, expected: Any) -> None:
    for one, wanted in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        assert one.dtype == wanted.dtype
        np.testing.assert_array_equal(one, wanted)


# By type: declaration, body, some values of which the first is the default.
KINDS: dict[str, tuple[str, str, list[Any]]] = {
    "int": ("int >= 2 = 3", "return x * k", [3, 2, 7]),
    "float": ("float = 0.5", "return x * k + k", [0.5, -2.0, 3]),
    "bool": ("bool = true", "return x if k else -x", [True, False]),
    "string": ("{'relu', 'neg'} = 'neg'", "return -x if k == 'neg' else x", ["neg", "relu"]),
    "text": ("string = ''", "return x * len(k)", ["", "word", "é"]),
    "shape": (
        "shape = { dim { size: 3 } dim { size: -1 } }",
        "return tf.ensure_shape(tf.transpose(x), k)",
        [tf.TensorShape([3, None]), [3, 2]],
    ),
    "dims": ("shape", "return tf.reshape(x, k) * k[0]", [[6], tf.TensorShape([1, 6]), (3, 2)]),
    "tensor": (
        "tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 2 }",
        "return x * k + k[0]",
        [np.array([2.0], np.float32), ROW],
    ),
    "list(int)": ("list(int) = [0, 1]", "return tf.reduce_sum(x, axis=k)", [[0, 1], [1], [-2]]),
    "list(int) >= 2": (
        "list(int) >= 2",
        "for each in k:\n    x = x * each\nreturn x",
        [[2, 3], (4, 5, 6)],
    ),
    "list(float)": (
        "list(float) = [0.5, 1.5]",
        "return x * k[0] + k[len(k) - 1]",
        [[0.5, 1.5], [2.0]],
    ),
    "list(bool)": (
        "list(bool) = []",
        "for each in k:\n    x = x + 1.0 if each else -x\nreturn x",
        [[], [True, False, True]],
    ),
    "list(string)": (
        "list({'relu', 'neg'}) = ['neg']",
        "for each in k:\n    x = tf.nn.relu(x) if each == 'relu' else -x\nreturn x",
        [["neg"], ["neg", "relu", "neg"]],
    ),
    "list(shape)": (
        "list(shape) = []",
        "for each in k:\n    x = tf.reshape(x, each)\nreturn x",
        [[], [[6], tf.TensorShape([1, 6])]],
    ),
    "list(tensor)": (
        "list(tensor)",
        "for each in k:\n    x = x * each\nreturn x",
        [[ROW], [ROW, np.float32(2)], []],
    ),
    "axis": ("int = -1", "return tf.cumsum(x, k)", [-1, 0]),
    "axes": (
        "list(int) = [0]",
        "return tf.squeeze(tf.expand_dims(x, 0), axis=k)",
        [[0]],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_mean_what_the_function_says(kind: str, tmp_path: Path) -> None:
    declared, body, values = KINDS[kind]
    op = defined(tmp_path, declared, body)
    for value in values:
        expected = op.python_function(tf.constant(X), value)
        same(op(X, k=value), expected)
        same(traced(op, value)(tf.constant(X)), expected)
        same(traced(op, value, tf.TensorSpec(None, tf.float32))(X), expected)
    if "=" in declared.replace(">=", ""):
        same(op(X), op.python_function(tf.constant(X), values[0]))


@pytest.mark.parametrize("kind", ["float", "string", "shape", "tensor", "list(int)", "list(shape)"])
def test_attributes_are_saved(kind: str, tmp_path: Path) -> None:
    declared, body, values = KINDS[kind]
    op = defined(tmp_path, declared, body)
    module = tf.Module()
    module.call = tf.function(
        lambda x: op(x, k=values[-1]), input_signature=[tf.TensorSpec([None, 3], tf.float32)]
    )
    tf.saved_model.save(module, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    same(loaded.call(X), op.python_function(tf.constant(X), values[-1]))


@pytest.mark.parametrize(
    ("declared", "body", "value", "told"),
    [
        ("int >= 2", "return x * k", 1, "minimum 2"),
        ("list(int) >= 2", "return x * k[0]", [1], "minimum 2"),
        ("{'a', 'b'}", "return x", "c", "not in"),
        ("list({'a', 'b'})", "return x", ["a", "c"], "not in"),
        ("int", "return x * k", "word", "int"),
        ("shape", "return tf.reshape(x, k)", "word", "TensorShape|shape"),
    ],
)
def test_values_that_the_declaration_does_not_allow(
    declared: str, body: str, value: Any, told: str, tmp_path: Path
) -> None:
    op = defined(tmp_path, declared, body)
    for call in (op, tf.function(op.__call__)):
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match=told):
            call(X, k=value)


def test_types_as_attributes(tmp_path: Path) -> None:
    one = defined(tmp_path, "{int32, double} = DT_INT32", "return tf.cast(x, k)", "y: k")
    same(one(X), tf.cast(X, tf.int32))
    same(tf.function(lambda: one(X, k=tf.float64))(), tf.cast(X, tf.float64))
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError), match="float"):
        one(X, k=tf.float32)
    several = defined(
        tmp_path, "list(type) = [DT_INT32, DT_HALF]", "return [tf.cast(x, t) for t in k]", "y: k"
    )
    for types in ([tf.int32, tf.half], [tf.float64], [tf.int64, tf.bool, tf.float32]):
        expected = several.python_function(tf.constant(X), types)
        same(several(X, k=types), expected)
        same(tf.function(lambda types=types: several(X, k=types))(), expected)
    assert [one.dtype for one in several(X)] == [tf.int32, tf.half]


def test_functions_as_attributes(tmp_path: Path) -> None:
    @tf.function
    def twice(x: Any) -> Any:
        return x * 2.0

    @tf.function
    def thrice(x: Any) -> Any:
        return x * 3.0

    spec = tf.TensorSpec(None, tf.float32)
    functions = [one.get_concrete_function(spec) for one in (twice, thrice)]
    one = defined(
        tmp_path,
        "func",
        "return tf.raw_ops.PartitionedCall(args=[x], Tout=[tf.float32], f=k)[0]",
    )
    several = defined(
        tmp_path,
        "list(func)",
        """
        index = tf.constant(1)
        return tf.raw_ops.Case(branch_index=index, input=[x], Tout=[tf.float32], branches=k)[0]
        """,
    )
    same(one(X, k=functions[0]), tf.constant(X * 2))
    same(traced(one, functions[1])(tf.constant(X)), tf.constant(X * 3))
    same(several(X, k=functions), tf.constant(X * 3))


def test_tensors_as_attributes_have_gradients(tmp_path: Path) -> None:
    op = defined(tmp_path, "tensor", "return x * k * k")
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = op(x, k=ROW)
    np.testing.assert_allclose(tape.gradient(y, x), np.tile(ROW * ROW, [2, 1]))
    same(op(X, k=tf.constant(ROW)), tf.constant(X * ROW * ROW))
    with pytest.raises(TypeError, match="known when the op is called"):
        tf.function(lambda k: op(X, k=k))(tf.constant(ROW))
    with pytest.raises((TypeError, ValueError)):
        op(X, k=object())


def test_a_tensor_is_the_value_of_const(tmp_path: Path) -> None:
    op = defined(tmp_path, "tensor", "return x * tf.raw_ops.Const(value=k, dtype=tf.float32)")
    same(op(X, k=ROW), tf.constant(X * ROW))
    same(traced(op, ROW)(tf.constant(X)), tf.constant(X * ROW))
