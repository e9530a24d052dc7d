"""Embedding bag: fastText, Joulin et al. 2016, https://arxiv.org/abs/1607.01759, section 2."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "EmbeddingBag",
    inputs=["table: T", "ids: Index", "bags: Index", "count: Index"],
    attrs=["combiner: {'sum', 'mean', 'sqrtn'} = 'mean'"],
    derived_attrs=[*FLOATS, "Index: {int32, int64}"],
    outputs=["y: T"],
)
def embedding_bag(table, ids, bags, count, combiner):
    """The sum or mean of the embeddings of each bag of ids.

    Args:
        table: [rows, n].
        ids: [most], rows of the table.
        bags: [most], the bag of each id; bags may come in any order.
        count: [], the number of bags.
        combiner: sum, mean, or sum divided by the square root of the number of ids.

    Returns:
        [count, n]; zeros for a bag without ids.
    """
    rows = tf.gather(table, ids)
    if combiner == "sum":
        return tf.math.unsorted_segment_sum(rows, bags, count)
    if combiner == "mean":
        return tf.math.unsorted_segment_mean(rows, bags, count)
    return tf.math.unsorted_segment_sqrt_n(rows, bags, count)
