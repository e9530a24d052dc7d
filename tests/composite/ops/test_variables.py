"""A variable is taken where an op declares a resource."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.composite.ops.keras_ops import count


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("make", [tf.Variable, keras.Variable], ids=["tf", "keras"])
def test_a_variable_is_given_by_its_handle(make, traced):
    variable = make(2.0)
    call = lambda: count(variable, 1.0)  # noqa: E731
    assert float(tf.function(call)() if traced else call()) == 3.0
    assert float(count(x=tf.constant(1.0), v=variable)) == 4.0
    assert float(tf.convert_to_tensor(variable)) == 4.0


def test_a_handle_is_given_as_before():
    variable = tf.Variable(2.0)
    assert float(count(variable.handle, 1.0)) == 3.0


def test_under_mixed_precision_the_variable_itself_is_changed():
    class Counts(keras.layers.Layer):
        def build(self, _):
            self.v = self.add_weight(shape=(), dtype="float32", initializer="zeros")

        def call(self, x):
            return tf.cast(count(self.v, 1.0), x.dtype) * x

    layer = Counts(dtype="mixed_float16")
    layer(np.ones(3, np.float32))
    assert float(layer(np.ones(3, np.float32))[0]) == 2.0


def test_what_is_no_variable_is_an_error():
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match="resource"):
        count(2.0, 1.0)
