"""Gate of a mixture of experts: Shazeer et al. 2017, https://arxiv.org/abs/1701.06538."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "TopKGate",
    inputs=["logits: T"],
    attrs=["k: int >= 1 = 2"],
    derived_attrs=FLOATS,
    outputs=["gates: T"],
)
def top_k_gate(logits, k):
    """How much of each token goes to each expert: softmax over the k largest logits, else 0.

    Args:
        logits: [tokens, experts].
        k: how many experts see a token.

    Returns:
        [tokens, experts], each row with the sum 1.
    """
    largest, experts = tf.math.top_k(logits, k)
    chosen = tf.one_hot(experts, logits.shape[-1], dtype=logits.dtype)
    return tf.reduce_sum(tf.nn.softmax(largest)[..., None] * chosen, -2)
