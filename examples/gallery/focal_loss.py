"""Sigmoid focal loss: Lin et al. 2017, https://arxiv.org/abs/1708.02002, equation 5."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "SigmoidFocalLoss",
    inputs=["logits: T", "labels: T"],
    attrs=["alpha: float = 0.25", "gamma: float = 2.0"],
    derived_attrs=FLOATS,
    outputs=["loss: T"],
)
def focal_loss(logits, labels, alpha, gamma):
    """Cross entropy where what is classified well counts less: -alpha_t (1 - p_t)^gamma log(p_t).

    Args:
        logits: [...], of independent classes.
        labels: [...], 0 or 1.
        alpha: the weight of label 1; that of label 0 is 1 - alpha.
        gamma: how much less.

    Returns:
        [...], a loss for each logit.
    """
    p = tf.sigmoid(logits)
    p_t = labels * p + (1 - labels) * (1 - p)
    alpha_t = labels * alpha + (1 - labels) * (1 - alpha)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return alpha_t * (1 - p_t) ** gamma * entropy
