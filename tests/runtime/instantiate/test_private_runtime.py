"""What runs the ops of a body where the caller brings no runtime: while constants are folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FOLDED_FIRST = """
import os
import tensorflow as tf
from composite import Composite

@Composite("PrivateRuntimeTwice", inputs=["x: int32"], outputs=["y: int32"])
def twice(x):
    return x * 2

with tf.Graph().as_default():
    free = tf.compat.v1.placeholder(tf.float32, [None])
    y = tf.reshape(free, twice(tf.constant([2, 3])))
    assert y.shape == [4, 6], y.shape  # folded: the kernel ran

tf.config.threading.set_intra_op_parallelism_threads(7)
tf.config.threading.set_inter_op_parallelism_threads(1)
before = len(os.listdir("/proc/self/task"))
tf.matmul(tf.ones([300, 300]), tf.ones([300, 300]))
started = len(os.listdir("/proc/self/task")) - before
assert started >= 7, started
"""


def test_folding_leaves_the_size_of_the_pool_to_the_user(run_python: Callable[..., Any]) -> None:
    run_python(FOLDED_FIRST)
