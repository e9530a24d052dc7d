"""Dims of values in terms of the inputs' unknown ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from composite.editing.scope import Edge
from composite.hybrid.freezing import freeze
from composite.hybrid.graph import graph_of
from composite.hybrid.values import Dims, Values


def dims_of(function: Callable[..., Any], *specs: tf.TensorSpec) -> list[Dims | None]:
    """Those of the outputs."""
    frozen = freeze(tf.function(function).get_concrete_function(*specs), "f")
    values = Values(frozen.library, frozen.inputs, parts=frozen.parts)
    return [values.of(of).dims for of in graph_of(frozen.library, frozen.library).outputs]


def spec(*shape: int | None) -> tf.TensorSpec:
    return tf.TensorSpec(shape, tf.float32)


def test_dims_follow_from_those_of_the_inputs() -> None:
    def made(x: Any, y: Any) -> Any:
        flat = tf.reshape(x, [tf.shape(x)[0], -1]) * 2.0
        return flat, tf.concat([x, x], 0), tf.matmul(x, y), tf.transpose(x), tf.nn.relu(y)[1:]

    found = dims_of(made, spec(None, 4), spec(4, None))
    assert found == [("s0", 4), ("s0 2 *", 4), ("s0", "s1"), (4, "s0"), (3, "s1")]


def test_inputs_that_must_agree_are_one_batch() -> None:
    assert dims_of(lambda x, y: x * 2.0 + y, spec(None, 4), spec(None, 4)) == [("s0", 4)]
    with pytest.raises(ValueError, match="no shapes can be inferred for inputs float32"):
        dims_of(lambda x, y: x + y, spec(2, None), spec(2, None))


def test_the_parts_of_a_value_are_no_batch() -> None:
    sparse = tf.SparseTensorSpec([None, 8], tf.float32)
    ragged = tf.RaggedTensorSpec([None, None], tf.float32)

    def parts(x: Any, s: Any, r: Any, y: Any) -> Any:
        return x + y, s.values * 2.0, tf.cast(s.indices, tf.float32), r.flat_values * 2.0

    found = dims_of(parts, spec(None, 4), sparse, ragged, spec(None, 4))
    assert found == [("s0", 4), ("s1",), ("s1", 2), ("s2",)]


def test_what_depends_on_values_is_a_symbol_of_its_own() -> None:
    def chosen(x: Any) -> Any:
        return tf.boolean_mask(x, x[:, 0] > 0.0) * 2.0, x + 1.0

    assert dims_of(chosen, spec(None, 4)) == [("s1", 4), ("s0", 4)]
    assert dims_of(lambda x: x * 2.0, tf.TensorSpec(None, tf.float32)) == [None]


def test_a_defined_value_is_what_was_said() -> None:
    frozen = freeze(tf.function(lambda x: x + 1.0).get_concrete_function(spec(2)), "f")
    values = Values(frozen.library, frozen.inputs)
    known = values.inputs[0]
    values.define(Edge("region", 1), known)
    assert values.of(Edge("region", 1)) is known
