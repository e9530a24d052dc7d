"""LSTM cell with layer normalization: Ba et al. 2016, https://arxiv.org/abs/1607.06450."""

import tensorflow as tf

from composite import Composite
from examples.gallery.layer_norm import layer_norm
from examples.gallery.precision import FLOATS


@Composite(
    "LayerNormLstmCell",
    inputs=["x: T", "h: T", "c: T", "kernel: T", "recurrent: T", "gammas: T", "bias: T",
            "gamma_c: T", "beta_c: T"],
    derived_attrs=FLOATS,
    outputs=["next_h: T", "next_c: T"],
)  # fmt: skip
def layer_norm_lstm_cell(x, h, c, kernel, recurrent, gammas, bias, gamma_c, beta_c):  # noqa: PLR0913, PLR0917 - the op's
    """One step of an LSTM whose products and carry are normalized.

    Args:
        x: [batch, inputs].
        h: [batch, units], the output of the step before.
        c: [batch, units], the carry.
        kernel: [inputs, 4 * units], gates in the order i, f, g, o.
        recurrent: [units, 4 * units].
        gammas: [2, 4 * units], the gains of both products.
        bias: [4 * units].
        gamma_c: [units], the gain of the carry.
        beta_c: [units], its offset.

    Returns:
        The next h and c, [batch, units] each.
    """
    none = tf.zeros_like(bias)
    z = layer_norm(x @ kernel, gammas[0], bias) + layer_norm(h @ recurrent, gammas[1], none)
    i, f, g, o = tf.split(z, 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(layer_norm(c, gamma_c, beta_c)), c
