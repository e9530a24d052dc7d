"""LSTM and GRU, a step and a whole sequence each, with the weights and the masks of Keras.

A sequence is batch major, x [batch, steps, inputs]; the loop over the steps is one While node.
"""

import tensorflow as tf

from composite import Composite

FLOATS = ["T: {float, double, half, bfloat16}"]
FUNCTIONS = "{'linear', 'relu', 'sigmoid', 'tanh', 'hard_sigmoid'}"
ACTS = [f"activation: {FUNCTIONS} = 'tanh'", f"recurrent_activation: {FUNCTIONS} = 'sigmoid'"]
ORDER = [
    "go_backwards: bool = false",
    "return_sequences: bool = false",
    "zero_output_for_mask: bool = false",
]


def activated(x, activation):
    """The function of Keras of that name."""
    if activation == "tanh":
        return tf.tanh(x)
    if activation == "sigmoid":
        return tf.sigmoid(x)
    if activation == "hard_sigmoid":
        return tf.nn.relu6(x + 3) / 6
    return tf.nn.relu(x) if activation == "relu" else x


def lstm_state(z, c, activation, recurrent_activation):
    """The next h and c of an LSTM whose gates i, f, c, o are z [batch, 4 * units] unactivated."""
    i, f, g, o = tf.split(z, 4, axis=1)
    kept = activated(f, recurrent_activation) * c
    new = activated(i, recurrent_activation) * activated(g, activation)
    c = kept + new
    return activated(o, recurrent_activation) * activated(c, activation), c


def reset_after_state(x_gates, h, kernel, bias, acts):
    """The next h of a GRU that resets what h gives; x_gates [batch, 3 * units] are z, r, h of x."""
    activation, recurrent_activation = acts
    x_z, x_r, x_h = tf.split(x_gates, 3, axis=1)
    h_z, h_r, h_h = tf.split(h @ kernel + bias, 3, axis=1)
    z = activated(x_z + h_z, recurrent_activation)
    r = activated(x_r + h_r, recurrent_activation)
    return z * h + (1 - z) * activated(x_h + r * h_h, activation)


def reset_before_state(x_gates, h, kernel, acts):
    """The next h of a GRU that resets h; x_gates [batch, 3 * units] are z, r, h of x."""
    activation, recurrent_activation = acts
    x_z, x_r, x_h = tf.split(x_gates, 3, axis=1)
    units = h.shape[1]
    h_z, h_r = tf.split(h @ kernel[:, : 2 * units], 2, axis=1)
    z = activated(x_z + h_z, recurrent_activation)
    r = activated(x_r + h_r, recurrent_activation)
    return z * h + (1 - z) * activated(x_h + (r * h) @ kernel[:, 2 * units :], activation)


def gru_state(x, h, weights, reset_after, acts):
    """The next h of a GRU; x [batch, inputs], weights and acts as the op has them."""
    kernel, recurrent_kernel, bias = weights
    if reset_after:
        return reset_after_state(x @ kernel + bias[0], h, recurrent_kernel, bias[1], acts)
    return reset_before_state(x @ kernel + bias, h, recurrent_kernel, acts)


@Composite(
    "LstmStep",
    inputs=["x: T", "h: T", "c: T", "kernel: T", "recurrent_kernel: T", "bias: T"],
    attrs=ACTS,
    derived_attrs=FLOATS,
    outputs=["next_h: T", "next_c: T"],
)
def lstm_step(x, h, c, kernel, recurrent_kernel, bias, activation, recurrent_activation):  # noqa: PLR0913, PLR0917 - the op's
    """One step of an LSTM, as keras.layers.LSTMCell makes it.

    Args:
        x: [batch, inputs].
        h: [batch, units], the output of the step before.
        c: [batch, units], the carry.
        kernel: [inputs, 4 * units], gates in the order i, f, c, o.
        recurrent_kernel: [units, 4 * units].
        bias: [4 * units].
        activation: of the candidate and the output.
        recurrent_activation: of the gates.

    Returns:
        The next h and c.
    """
    z = x @ kernel + h @ recurrent_kernel + bias
    return lstm_state(z, c, activation, recurrent_activation)


@Composite(
    "LstmSequence",
    inputs=["x: T", "h0: T", "c0: T", "kernel: T", "recurrent_kernel: T", "bias: T",
            "mask: masks * bool"],
    attrs=[*ACTS, *ORDER],
    derived_attrs=[*FLOATS, "masks: int >= 0"],
    outputs=["y: T", "h: T", "c: T"],
)  # fmt: skip
def lstm(  # noqa: PLR0913, PLR0917 - the op's
    x, h0, c0, kernel, recurrent_kernel, bias, mask,
    activation, recurrent_activation, go_backwards, return_sequences, zero_output_for_mask,
):  # fmt: skip
    """An LSTM over sequences, as keras.layers.LSTM makes it.

    Args:
        x: [batch, steps, inputs].
        h0: [batch, units], the output before the first step.
        c0: [batch, units], the carry before the first step.
        kernel: [inputs, 4 * units], gates in the order i, f, c, o.
        recurrent_kernel: [units, 4 * units].
        bias: [4 * units].
        mask: none, or one [batch, steps]; a step with False leaves h and c as they are, and its
            output is that of the step before, zeros before the first.
        activation: of the candidate and the output.
        recurrent_activation: of the gates.
        go_backwards: whether the last step comes first, in y too.
        return_sequences: whether y has all outputs, or only the last.
        zero_output_for_mask: whether the output of a step with False is zeros.

    Returns:
        y, [batch, steps, units] or [batch, units], and h and c after the last step.
    """
    steps = tf.shape(x)[1]
    h, c, y = h0, c0, tf.zeros_like(h0)
    ys = tf.TensorArray(x.dtype, size=steps, element_shape=h0.shape)
    for t in range(steps):
        at = steps - 1 - t if go_backwards else t
        z = x[:, at] @ kernel + h @ recurrent_kernel + bias
        next_h, next_c = lstm_state(z, c, activation, recurrent_activation)
        if len(mask) > 0:
            seen = mask[0][:, at, None]
            y = tf.where(seen, next_h, tf.zeros_like(y) if zero_output_for_mask else y)
            h = tf.where(seen, next_h, h)
            c = tf.where(seen, next_c, c)
        else:
            h, c = next_h, next_c
        if return_sequences:
            ys = ys.write(t, y if len(mask) > 0 else h)
    if return_sequences:
        return tf.transpose(ys.stack(), [1, 0, 2]), h, c
    return y if len(mask) > 0 else h, h, c


@Composite(
    "GruStep",
    inputs=["x: T", "h: T", "kernel: T", "recurrent_kernel: T", "bias: T"],
    attrs=[*ACTS, "reset_after: bool = true"],
    derived_attrs=FLOATS,
    outputs=["next_h: T"],
)
def gru_step(x, h, kernel, recurrent_kernel, bias, activation, recurrent_activation, reset_after):  # noqa: PLR0913, PLR0917 - the op's
    """One step of a GRU, as keras.layers.GRUCell makes it; for the arguments see `gru`.

    Returns:
        The next h, [batch, units].
    """
    weights = (kernel, recurrent_kernel, bias)
    return gru_state(x, h, weights, reset_after, (activation, recurrent_activation))


@Composite(
    "GruSequence",
    inputs=["x: T", "h0: T", "kernel: T", "recurrent_kernel: T", "bias: T", "mask: masks * bool"],
    attrs=[*ACTS, "reset_after: bool = true", *ORDER],
    derived_attrs=[*FLOATS, "masks: int >= 0"],
    outputs=["y: T", "h: T"],
)
def gru(  # noqa: PLR0913, PLR0917 - the op's
    x, h0, kernel, recurrent_kernel, bias, mask, activation, recurrent_activation,
    reset_after, go_backwards, return_sequences, zero_output_for_mask,
):  # fmt: skip
    """A GRU over sequences, as keras.layers.GRU makes it.

    Args:
        x: [batch, steps, inputs].
        h0: [batch, units], the state before the first step.
        kernel: [inputs, 3 * units], gates in the order z, r, h.
        recurrent_kernel: [units, 3 * units].
        bias: [2, 3 * units], of the products of x and of h; [3 * units] without `reset_after`.
        mask: as of `lstm`.
        activation: of the candidate.
        recurrent_activation: of the gates.
        reset_after: whether the gate r multiplies the product of h, or h.
        go_backwards: as of `lstm`.
        return_sequences: as of `lstm`.
        zero_output_for_mask: as of `lstm`.

    Returns:
        y, [batch, steps, units] or [batch, units], and h after the last step.
    """
    steps = tf.shape(x)[1]
    weights = (kernel, recurrent_kernel, bias)
    acts = (activation, recurrent_activation)
    h, y = h0, tf.zeros_like(h0)
    ys = tf.TensorArray(x.dtype, size=steps, element_shape=h0.shape)
    for t in range(steps):
        at = steps - 1 - t if go_backwards else t
        next_h = gru_state(x[:, at], h, weights, reset_after, acts)
        if len(mask) > 0:
            seen = mask[0][:, at, None]
            y = tf.where(seen, next_h, tf.zeros_like(y) if zero_output_for_mask else y)
            h = tf.where(seen, next_h, h)
        else:
            h = next_h
        if return_sequences:
            ys = ys.write(t, y if len(mask) > 0 else h)
    if return_sequences:
        return tf.transpose(ys.stack(), [1, 0, 2]), h
    return y if len(mask) > 0 else h, h
