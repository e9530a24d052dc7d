"""What Keras models say of their inputs, called before or not."""

from __future__ import annotations

from typing import Any

import keras
import pytest
import tensorflow as tf

import composite
from composite.ops.keras_models import inputs_of


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, x: Any) -> Any:
        return self.dense(x)


def _shapes(model: Any) -> Any:
    return keras.tree.map_structure(lambda x: (tuple(x.shape), x.dtype), inputs_of(model))


def test_a_sequential_model() -> None:
    model = keras.Sequential([keras.Input((48,)), keras.layers.Dense(12)])
    assert _shapes(model) == ((None, 48), "float32")
    model(keras.Input((48,), batch_size=3))  # a call of its own says nothing of others
    assert _shapes(model) == ((None, 48), "float32")
    nested = keras.Sequential([model, keras.layers.Dense(1)])
    assert _shapes(nested) == ((None, 48), "float32")


def test_a_sequential_model_that_is_built_by_its_first_call() -> None:
    model = keras.Sequential([keras.layers.Dense(12)])
    assert inputs_of(model) is None
    model(tf.ones([2, 5]))
    assert _shapes(model)[0][1:] == (5,)


def test_a_functional_model_has_its_structure() -> None:
    one = keras.Input((3,), name="numbers")
    assert _shapes(keras.Model(one, one + 1)) == ((None, 3), "float32")
    assert _shapes(keras.Model([one], one + 1)) == [((None, 3), "float32")]
    inputs = {"words": keras.Input((7,), dtype="int32", name="words"), "numbers": one}
    given = _shapes(keras.Model(inputs, inputs["words"] + 1))
    assert given == {"words": ((None, 7), "int32"), "numbers": ((None, 3), "float32")}


def test_a_subclassed_model_says_nothing() -> None:
    model = Subclassed()
    assert inputs_of(model) is None
    model(tf.ones([2, 5]))
    assert inputs_of(model) is None


@pytest.mark.parametrize("called", [False, True])
def test_parts_of_a_sequential_model_are_replaced(called: bool) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Activation("tanh")])
    x = tf.ones([2, 4])
    if called:
        model(x)
    edited = composite.replace(model, "Tanh", lambda x: 2.0 * x)
    assert edited.function is not None
    assert float(edited(x)[0, 0]) == 2.0
