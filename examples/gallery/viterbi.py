"""The best path of tags: Viterbi 1967, https://doi.org/10.1109/TIT.1967.1054010."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "ViterbiDecode",
    inputs=["emissions: T", "transitions: T"],
    derived_attrs=FLOATS,
    outputs=["tags: int32", "score: T"],
)
def viterbi_decode(emissions, transitions):
    """The tags whose emissions and transitions have the largest sum.

    Args:
        emissions: [batch, steps, tags], the score of each tag at each step.
        transitions: [tags, tags], the score of a tag (row) before another (column).

    Returns:
        The tags, [batch, steps], and their score, [batch].
    """
    steps = tf.shape(emissions)[1]
    score = emissions[:, 0]
    before = tf.TensorArray(tf.int32, size=steps, element_shape=score.shape)
    for t in range(1, steps):
        sums = score[:, :, None] + transitions
        before = before.write(t, tf.argmax(sums, 1, output_type=tf.int32))
        score = tf.reduce_max(sums, 1) + emissions[:, t]

    tag = tf.argmax(score, -1, output_type=tf.int32)
    path = tf.TensorArray(tf.int32, size=steps, element_shape=tag.shape)
    path = path.write(steps - 1, tag)
    for back in range(1, steps):
        tag = tf.gather(before.read(steps - back), tag, batch_dims=1)
        path = path.write(steps - 1 - back, tag)
    return tf.transpose(path.stack()), tf.reduce_max(score, -1)
