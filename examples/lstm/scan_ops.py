"""Other recurrences, each one While node over the steps: a plain RNN, an SRU, a Kalman filter."""

import tensorflow as tf

from composite import Composite

FLOATS = ["T: {float, double}"]


@Composite(
    "RnnSequence",
    inputs=["x: T", "h0: T", "kernel: T", "recurrent_kernel: T", "bias: T"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def rnn(x, h0, kernel, recurrent_kernel, bias):
    """A plain RNN, as keras.layers.SimpleRNN makes it: h = tanh(x @ kernel + h @ recurrent + bias).

    Args:
        x: [batch, steps, inputs].
        h0: [batch, units].
        kernel: [inputs, units].
        recurrent_kernel: [units, units].
        bias: [units].

    Returns:
        h after each step, [batch, steps, units].
    """
    steps = tf.shape(x)[1]
    h = h0
    ys = tf.TensorArray(x.dtype, size=steps, element_shape=h0.shape)
    for t in range(steps):
        h = tf.tanh(x[:, t] @ kernel + h @ recurrent_kernel + bias)
        ys = ys.write(t, h)
    return tf.transpose(ys.stack(), [1, 0, 2])


@Composite(
    "SruSequence",
    inputs=["x: T", "c0: T", "kernel: T", "peephole: T", "bias: T"],
    derived_attrs=FLOATS,
    outputs=["y: T", "c: T"],
)
def sru(x, c0, kernel, peephole, bias):
    """A simple recurrent unit (Lei et al., 2018): no product of a step needs the step before.

    Args:
        x: [batch, steps, units].
        c0: [batch, units].
        kernel: [units, 3 * units]: of the candidate, the gate f and the gate r.
        peephole: [2, units], by which c enters f and r.
        bias: [2, units], of f and r.

    Returns:
        The outputs r * c + (1 - r) * x, [batch, steps, units], and c after the last step.
    """
    steps = tf.shape(x)[1]
    c = c0
    ys = tf.TensorArray(x.dtype, size=steps, element_shape=c0.shape)
    for t in range(steps):
        candidate, x_f, x_r = tf.split(x[:, t] @ kernel, 3, axis=1)
        f = tf.sigmoid(x_f + peephole[0] * c + bias[0])
        r = tf.sigmoid(x_r + peephole[1] * c + bias[1])
        c = f * c + (1 - f) * candidate
        ys = ys.write(t, r * c + (1 - r) * x[:, t])
    return tf.transpose(ys.stack(), [1, 0, 2]), c


@Composite(
    "KalmanFilter",
    inputs=["z: T", "mean: T", "covariance: T", "transition: T", "process: T", "observe: T",
            "noise: T"],
    derived_attrs=FLOATS,
    outputs=["means: T", "last: T"],
)  # fmt: skip
def kalman(z, mean, covariance, transition, process, observe, noise):  # noqa: PLR0913, PLR0917 - the op's
    """A Kalman filter of one number a step; all sequences have one covariance.

    Args:
        z: [batch, steps], what is observed.
        mean: [batch, n], the state that is expected before the first step.
        covariance: [n, n], of that state.
        transition: [n, n], what a step makes of a state, as a column.
        process: [n, n], the covariance of what a step adds.
        observe: [1, n], what is observed of a state.
        noise: [], the variance of what an observation adds.

    Returns:
        The expected state after each observation, [batch, steps, n], and the last covariance.
    """
    steps = tf.shape(z)[1]
    m, p = mean, covariance
    means = tf.TensorArray(z.dtype, size=steps, element_shape=mean.shape)
    for t in range(steps):
        m = tf.matmul(m, transition, transpose_b=True)
        p = tf.matmul(transition @ p, transition, transpose_b=True) + process
        seen = tf.matmul(observe, p)  # [1, n]
        gain = seen / (tf.matmul(seen, observe, transpose_b=True) + noise)
        surprise = z[:, t, None] - tf.matmul(m, observe, transpose_b=True)
        m = m + surprise * gain
        p = p - tf.matmul(gain, seen, transpose_a=True)
        means = means.write(t, m)
    return tf.transpose(means.stack(), [1, 0, 2]), p
