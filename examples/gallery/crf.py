"""Linear-chain conditional random field: Lample et al. 2016, https://arxiv.org/abs/1603.01360."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "CrfLogLikelihood",
    inputs=["emissions: T", "tags: int32", "transitions: T"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def crf_log_likelihood(emissions, tags, transitions):
    """The log of the tags' probability: score(tags) - log(sum of exp(score) over all paths).

    Args:
        emissions: [batch, steps, tags], the score of each tag at each step.
        tags: [batch, steps], the true ones.
        transitions: [tags, tags], the score of a tag (row) before another (column).

    Returns:
        [batch].
    """
    emitted = tf.reduce_sum(tf.gather(emissions, tags, batch_dims=2), -1)
    pairs = tf.stack([tags[:, :-1], tags[:, 1:]], -1)
    passed = tf.reduce_sum(tf.gather_nd(transitions, pairs), -1)
    total = emissions[:, 0]
    for t in range(1, tf.shape(emissions)[1]):
        total = tf.reduce_logsumexp(total[:, :, None] + transitions, 1) + emissions[:, t]
    return emitted + passed - tf.reduce_logsumexp(total, -1)
