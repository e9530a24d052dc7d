"""Feed-forward layer with a SwiGLU: Shazeer 2020, https://arxiv.org/abs/2002.05202, equation 6."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "SwiGlu",
    inputs=["x: T", "w_gate: T", "w_up: T", "w_down: T"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def swiglu(x, w_gate, w_up, w_down):
    """The feed-forward layer (silu(x @ w_gate) * (x @ w_up)) @ w_down.

    Args:
        x: [rows, n].
        w_gate: [n, hidden].
        w_up: [n, hidden].
        w_down: [hidden, n].

    Returns:
        [rows, n].
    """
    return (tf.nn.silu(x @ w_gate) * (x @ w_up)) @ w_down
