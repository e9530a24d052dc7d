"""Each kind of declaration: values, gradients, eager and traced, beside the Python functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.signatures import ops

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5

# Name of the op, its inputs, its attributes.
CALLS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("same", [X], {}),
    ("same", [np.array(["a", "b"])], {}),
    ("same_list", [[X]], {}),
    ("same_list", [[X, X + 1, X * 2]], {}),
    ("same_tuple", [[X, np.int32(3), np.array(["s"])]], {}),
    *(("sum_of_list", [[X * i for i in range(n)]], {}) for n in (1, 2, 3, 4, 7)),
    ("sum_of_list", [[np.array([1, 2]), np.array([3, 4])]], {}),
    *(("copies", [X], {"N": n}) for n in (0, 1, 3)),
    ("either_of", [X, -X], {"first": True}),
    ("either_of", [X, -X], {"first": False}),
    *(("rotated_axis", [X], {"axis": a, "by": b}) for a in (0, 1, -1) for b in (-1, 0, 1, 9)),
    ("rotated_axis", [X[:0]], {"axis": 0}),
    ("line", [X], {}),
    ("line", [X], {"slope": -0.5, "offset": 3}),
    ("line", [X], {"offset": -2, "weights": [1.0, -0.25]}),
    ("filled", [], {"shape": [2, 3], "dtype": tf.string, "text": "é"}),
    ("filled", [], {"shape": [2], "dtype": tf.float32, "number": 0.5, "axes": []}),
    (
        "filled",
        [],
        {"shape": [1, 2], "dtype": tf.int32, "number": -7.0, "axes": [0, 1]},
    ),
    *(("weighted_sum", [X, X + 1, X * 0 - 2], {"act": a}) for a in ("", "RELU", "TANH")),
    ("least_and_most", [X], {}),
    ("least_and_most", [np.array([3, -4], np.int8)], {"keep_dims": True}),
]


def flat(result: Any) -> list[Any]:
    return [np.asarray(value) for value in tf.nest.flatten(result)]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]}-{len(call[1])}-{call[2]}")
def test_the_op_is_its_function(call: tuple[str, list[Any], dict[str, Any]]) -> None:
    name, inputs, attrs = call
    op = getattr(ops, name)
    tensors = tf.nest.map_structure(tf.constant, inputs)
    given = {a.name: attrs.get(a.name, a.default) for a in op.schema.attrs}
    if "shape" in given:
        given["shape"] = tf.TensorShape(given["shape"])
    expected = op.python_function(*tensors, **given)
    for call_op in (op, tf.function(op)):
        result = call_op(*tensors, **attrs)
        assert type(result) is type(expected) or tf.is_tensor(result)
        for ours, theirs in zip(flat(result), flat(expected), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def test_no_inputs_and_no_outputs() -> None:
    assert ops.nothing_in_nothing_out() is None

    @tf.function
    def traced(x: Any) -> Any:
        ops.nothing_in_nothing_out()
        return x

    assert float(traced(3.0)) == 3.0


@pytest.mark.parametrize(
    ("name", "inputs", "attrs"),
    [
        ("same_list", [[X, X + 1]], {}),
        ("sum_of_list", [[X, X + 1, X * 2, X]], {}),
        ("copies", [X], {"N": 2}),
        ("rotated_axis", [X], {"axis": 1, "by": 3}),
        ("line", [X], {"slope": 2.0, "weights": [0.5]}),
        ("weighted_sum", [X, X + 1, X], {"act": "TANH"}),
        ("least_and_most", [X], {}),
    ],
)
def test_gradients(name: str, inputs: list[Any], attrs: dict[str, Any]) -> None:
    op = getattr(ops, name)
    tensors = tf.nest.map_structure(tf.constant, inputs)
    given = {a.name: attrs.get(a.name, a.default) for a in op.schema.attrs}
    gradients = []
    for function, values in ((op, attrs), (op.python_function, given)):
        with composite.options(backend="tf"), tf.GradientTape() as tape:
            tape.watch(tensors)
            result = function(*tensors, **values)
        weights = [tf.cast(tf.range(tf.size(y)), y.dtype) for y in tf.nest.flatten(result)]
        weights = [
            tf.reshape(w, y.shape) for w, y in zip(weights, tf.nest.flatten(result), strict=True)
        ]
        gradients.append(flat(tape.gradient(tf.nest.flatten(result), tensors, weights)))
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "inputs", "attrs", "message"),
    [
        ("same_list", [[]], {}, "N"),
        ("sum_of_list", [[np.array(["s"])]], {}, "T"),
        ("copies", [X], {"N": -1}, "N"),
        ("weighted_sum", [X, X, X], {"act": "ELU"}, "act"),
        ("filled", [], {"shape": [1], "dtype": tf.int64}, "dtype"),
        ("either_of", [X, tf.constant(1)], {"first": True}, "y"),
        ("rotated_axis", [X], {"axis": 5}, "axis|index"),
    ],
)
def test_what_a_declaration_forbids(
    name: str, inputs: list[Any], attrs: dict[str, Any], message: str
) -> None:
    call = tf.function(lambda: getattr(ops, name)(*inputs, **attrs))
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match=message):
        call()
