"""Scaled dot-product attention: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS, widened

HIDDEN = -1e9  # the score of a key that a query does not see


@Composite(
    "ScaledDotProductAttention",
    inputs=["query: T", "key: T", "value: T", "mask: masks * bool"],
    attrs=["causal: bool = false"],
    derived_attrs=[*FLOATS, "masks: int >= 0"],
    outputs=["y: T"],
)
def attention(query, key, value, mask, causal):
    """Attention of several heads: softmax(query @ keyᵀ / √width) @ value, of what is seen.

    Args:
        query: [batch, queries, heads, width].
        key: [batch, keys, heads, width].
        value: [batch, keys, heads, m].
        mask: none or more, each broadcasts to [batch, heads, queries, keys]; False hides a key
            from a query. A query that sees none takes the mean of all values.
        causal: whether query i sees the keys up to i alone.

    Returns:
        [batch, queries, heads, m].
    """
    scores = tf.einsum("bqhd,bkhd->bhqk", query, key)
    scores = widened(scores) / query.shape[-1] ** 0.5
    if causal:
        seen = tf.range(tf.shape(query)[1])[:, None] >= tf.range(tf.shape(key)[1])
        scores = tf.where(seen, scores, HIDDEN)
    for seen in mask:
        scores = tf.where(seen, scores, HIDDEN)
    weights = tf.cast(tf.nn.softmax(scores), value.dtype)
    return tf.einsum("bhqk,bkhd->bqhd", weights, value)
