"""Adam: Kingma and Ba 2014, https://arxiv.org/abs/1412.6980, algorithm 1, as its section 2 ends."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "AdamUpdate",
    inputs=["weights: T", "m: T", "v: T", "gradient: T", "step: T"],
    attrs=["rate: float = 1e-3", "beta_1: float = 0.9", "beta_2: float = 0.999",
           "epsilon: float = 1e-7"],
    derived_attrs=FLOATS,
    outputs=["next_weights: T", "next_m: T", "next_v: T"],
)  # fmt: skip
def adam_update(weights, m, v, gradient, step, rate, beta_1, beta_2, epsilon):  # noqa: PLR0913, PLR0917 - the op's
    """One step of Adam: weights - rate_t * m / (√v + epsilon).

    Args:
        weights: [...].
        m: [...], the mean of the gradients so far.
        v: [...], the mean of their squares.
        gradient: [...], that of the loss in the weights.
        step: [], the number of this step, from 1.
        rate: of learning.
        beta_1: how much of m is kept.
        beta_2: how much of v is kept.
        epsilon: what keeps the first steps from a division by zero.

    Returns:
        The next weights, m and v.
    """
    m = beta_1 * m + (1 - beta_1) * gradient
    v = beta_2 * v + (1 - beta_2) * tf.square(gradient)
    rate_t = rate * tf.sqrt(1 - beta_2**step) / (1 - beta_1**step)
    return weights - rate_t * m / (tf.sqrt(v) + epsilon), m, v
