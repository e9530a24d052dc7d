"""keras.layers.LSTM and GRU, and their cells, whose loop is one composite op.

They are Keras' layers in all else: arguments, weights, configuration, states, masks, Bidirectional.
What an op does not have is left to Keras: other activations, and recurrent dropout in training.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from examples.lstm import ops

ACTIVATIONS = ("linear", "relu", "sigmoid", "tanh", "hard_sigmoid")
_PACKAGE = "composite_lstm"
_registered = keras.saving.register_keras_serializable(_PACKAGE)


def _activations(cell: Any) -> dict[str, str] | None:
    """The attributes of an op for the activations of a cell; None if it has other ones."""
    names = [getattr(f, "__name__", "") for f in (cell.activation, cell.recurrent_activation)]
    known = all(
        name in ACTIVATIONS and keras.activations.get(name) is function
        for name, function in zip(names, (cell.activation, cell.recurrent_activation), strict=True)
    )
    return {"activation": names[0], "recurrent_activation": names[1]} if known else None


def _weights(cell: Any, bias_shape: tuple[int, ...]) -> list[Any]:
    """Kernel, recurrent kernel, and bias or zeros, in the dtype that a cell computes in."""
    kernel, recurrent = map(keras.ops.convert_to_tensor, (cell.kernel, cell.recurrent_kernel))
    if cell.bias is None:
        return [kernel, recurrent, tf.zeros(bias_shape, kernel.dtype)]
    return [kernel, recurrent, keras.ops.convert_to_tensor(cell.bias)]


def _gru_bias(cell: Any) -> tuple[int, ...]:
    return (2, 3 * cell.units) if cell.reset_after else (3 * cell.units,)


def _drops(cell: Any, training: Any) -> bool:
    """Whether a cell multiplies by masks of its own in this call."""
    return bool(training) and bool(cell.dropout or cell.recurrent_dropout)


@_registered
class LSTMCell(keras.layers.LSTMCell):
    """keras.layers.LSTMCell as one LstmStep node."""

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        """One step: [batch, inputs] and h, c -> the output, which is h, and [h, c]."""
        attrs = _activations(self)
        if attrs is None or _drops(self, training):
            return super().call(inputs, states, training=training)
        h, c = ops.lstm_step(inputs, *states, *_weights(self, (4 * self.units,)), **attrs)
        return h, [h, c]


@_registered
class GRUCell(keras.layers.GRUCell):
    """keras.layers.GRUCell as one GruStep node."""

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        """One step: [batch, inputs] and h, or [h] -> the output, which is h, and h or [h]."""
        attrs = _activations(self)
        if attrs is None or _drops(self, training):
            return super().call(inputs, states, training=training)
        h = states[0] if isinstance(states, (list, tuple)) else states
        weights = _weights(self, _gru_bias(self))
        h = ops.gru_step(inputs, h, *weights, reset_after=self.reset_after, **attrs)
        return h, [h] if isinstance(states, (list, tuple)) else h


def _order(layer: Any) -> dict[str, bool]:
    return {
        "go_backwards": layer.go_backwards,
        "return_sequences": layer.return_sequences,
        "zero_output_for_mask": layer.zero_output_for_mask,
    }


def _dropped(layer: Any, sequences: Any, training: Any) -> Any:
    """The inputs of a layer, after the dropout that is the same in all steps; None if it is not."""
    cell = layer.cell
    if not _drops(cell, training):
        return sequences
    mask = cell.get_dropout_mask(sequences[:, 0])
    if cell.recurrent_dropout or isinstance(mask, list):
        return None
    return sequences * keras.ops.expand_dims(mask, 1)


def _masks(mask: Any) -> list[Any]:
    """The masks of a call, none or one, [batch, steps] of bool."""
    return [tf.cast(one, tf.bool) for one in keras.tree.flatten(mask) if one is not None]


@_registered
class LSTM(keras.layers.LSTM):
    """keras.layers.LSTM as one LstmSequence node."""

    def inner_loop(
        self, sequences: Any, initial_state: Any, mask: Any, training: Any = False
    ) -> Any:
        """The last output, all outputs, and the states after the last step.

        As Keras' own loop does, it may give the last output for all where only that is returned,
        and the other way round.
        """
        attrs, x = _activations(self.cell), _dropped(self, sequences, training)
        if attrs is None or x is None:
            return super().inner_loop(sequences, initial_state, mask, training=training)
        weights = _weights(self.cell, (4 * self.units,))
        y, h, c = ops.lstm(x, *initial_state, *weights, _masks(mask), **attrs, **_order(self))
        return y, y, [h, c]


@_registered
class GRU(keras.layers.GRU):
    """keras.layers.GRU as one GruSequence node."""

    def inner_loop(
        self, sequences: Any, initial_state: Any, mask: Any, training: Any = False
    ) -> Any:
        """As of LSTM."""
        attrs, x = _activations(self.cell), _dropped(self, sequences, training)
        if attrs is None or x is None:
            return super().inner_loop(sequences, initial_state, mask, training=training)
        (h0,) = keras.tree.flatten(initial_state)
        weights = _weights(self.cell, _gru_bias(self.cell))
        attrs |= {"reset_after": self.reset_after}
        y, h = ops.gru(x, h0, *weights, _masks(mask), **attrs, **_order(self))
        return y, y, [h]


OURS = {one.__name__: one for one in (LSTM, GRU, LSTMCell, GRUCell)}


def replaced(model: keras.Model) -> keras.Model:
    """A model in the place of one that was built or loaded, with its weights and these layers."""
    config = _with_ours(keras.saving.serialize_keras_object(model))
    made = keras.saving.deserialize_keras_object(config)
    made.set_weights(model.get_weights())
    return made


def _with_ours(config: Any) -> Any:
    """A configuration in which Keras' layers are these, as deep as it goes."""
    if isinstance(config, (list, tuple)):
        return [_with_ours(one) for one in config]
    if not isinstance(config, dict):
        return config
    made = {key: _with_ours(value) for key, value in config.items()}
    if config.get("module") == "keras.layers" and config.get("class_name") in OURS:
        name = config["class_name"]
        made |= {"module": __name__, "registered_name": f"{_PACKAGE}>{name}"}
    return made
