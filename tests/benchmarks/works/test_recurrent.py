"""The references of recurrent layers are Keras's, and their weights can be rearranged."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.works.layers import LAYERS
from benchmarks.works.recurrent import gates_as_rows
from benchmarks.works.work import Work

SHAPE = (2, 4, 5, 3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_the_reference_is_keras(kind: str) -> None:
    program = Work(kind, SHAPE).program()
    layer = getattr(tf.keras.layers, kind)(SHAPE[-1], return_sequences=True)
    layer.build(program.x.shape)
    layer.set_weights(program.weights)
    assert program.difference(layer(program.x).numpy()) < 1e-6


def test_what_a_recurrent_layer_costs() -> None:
    batch, time, features, units = SHAPE
    lstm, gru = LAYERS["LSTM"], LAYERS["GRU"]
    assert lstm.flops(SHAPE) == 2 * batch * time * 4 * units * (features + units)
    assert gru.flops(SHAPE) == lstm.flops(SHAPE) * 3 // 4
    moved = batch * time * (features + units)
    assert lstm.bytes(SHAPE) == 4 * (moved + 4 * units * (features + units) + 4 * units)
    assert gru.bytes(SHAPE) == 4 * (moved + 3 * units * (features + units) + 6 * units)


def test_gates_become_rows_in_another_order() -> None:
    kernel = np.arange(12.0).reshape(2, 6)  # three gates of two units
    recurrent = np.arange(12.0, 24.0).reshape(2, 6)
    biases = np.arange(12.0).reshape(2, 6)
    converted = gates_as_rows([kernel, recurrent, biases] * 2, (1, 0, 2))
    assert len(converted) == 6
    order = [2, 3, 0, 1, 4, 5]
    np.testing.assert_array_equal(converted[0], kernel.T[order])
    np.testing.assert_array_equal(converted[4], recurrent.T[order])
    np.testing.assert_array_equal(converted[5], biases[:, order])


def test_one_bias_is_given_a_second_of_zeros() -> None:
    *_, biases = gates_as_rows([np.ones((1, 4)), np.ones((1, 4)), np.arange(4.0)], (0, 3, 1, 2))
    np.testing.assert_array_equal(biases, [[0, 3, 1, 2], [0, 0, 0, 0]])
