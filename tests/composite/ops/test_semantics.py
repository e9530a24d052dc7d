"""A composite means what its Python function says, wherever TensorFlow runs it.

Each place is tried in processes of their own with one thread and with two: a kernel that waits for
a thread of the pool it runs on would hang in the first.
"""

import pytest

_PLACES = """
import sys
import numpy as np
import tensorflow as tf
import composite
from tests.composite.dense_ops import dense

random = np.random.default_rng(0)
x = random.standard_normal((5, 8)).astype(np.float32)
w = random.standard_normal((4, 8)).astype(np.float32)
b = random.standard_normal(4).astype(np.float32)


def eager(act):
    return dense(x, w, b, act=act)


def function(act):
    traced = tf.function(lambda x: dense(x, w, b, act=act))
    return traced(tf.constant(x))


def unknown_shapes(act):
    traced = tf.function(
        lambda x, w, b: dense(x, w, b, act=act), input_signature=[tf.TensorSpec(None)] * 3
    )
    return traced(x, w, b)


def session(act):
    with tf.Graph().as_default(), tf.compat.v1.Session() as run:
        feed = tf.compat.v1.placeholder(tf.float32, [None, 8])
        return run.run(dense(feed, w, b, act=act), {feed: x})


def dataset_map(act):
    rows = tf.data.Dataset.from_tensor_slices(x).map(lambda row: dense(row[None], w, b, act=act)[0])
    return np.stack(list(rows.as_numpy_iterator()))


def cond(act):
    @tf.function
    def traced(x, yes):
        return tf.cond(yes, lambda: dense(x, w, b, act=act), lambda: tf.zeros([5, 4]))
    return traced(x, tf.constant(True))


def while_loop(act):
    @tf.function
    def traced(x):
        def step(i, total):
            return i + 1, total + dense(x, w, b, act=act)
        return tf.while_loop(lambda i, _: i < 3, step, [0, tf.zeros([5, 4])])[1] / 3
    return traced(x)


for backend in ("tf", "auto"):
    for act in ("", "RELU", "RELU6", "TANH"):
        expected = dense.python_function(x, w, b, act).numpy()
        for place in (eager, function, unknown_shapes, session, dataset_map, cond, while_loop):
            with composite.options(backend=backend):
                found = np.asarray(place(act))
            np.testing.assert_allclose(
                found, expected, rtol=2e-5, atol=2e-6, err_msg=f"{place.__name__} {act} {backend}"
            )
print("done")
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_every_place_agrees_with_python(run_python, threads):
    done = run_python(_PLACES, intra=threads, inter=threads)
    assert done.stdout.endswith("done\n")


_KERNELS = _PLACES.replace('("tf", "auto")', '("tvm",)')


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_agree_with_python(run_python, threads):
    done = run_python(_KERNELS, intra=threads, inter=threads)
    assert done.stdout.endswith("done\n")


_GRAPH_MODE = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
import composite
from tests.composite.dense_ops import dense

random = np.random.default_rng(0)
x = random.standard_normal((5, 8)).astype(np.float32)
w = random.standard_normal((4, 8)).astype(np.float32)
b = random.standard_normal(4).astype(np.float32)
product = x @ w.T + b
feed = tf.placeholder(tf.float32, [None, 8])
y = dense(feed, w, b, act="RELU")
(slope,) = tf.gradients(y, feed)
with composite.options(backend="tvm"):
    by_kernel = dense(feed, w, b, act="RELU")
with tf.Session() as session:
    for fetch, expected in (
        (y, np.maximum(product, 0)),
        (slope, (product > 0) @ w),
        (by_kernel, np.maximum(product, 0)),
    ):
        found = session.run(fetch, {feed: x})
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
assert composite.wait(timeout=60)
assert composite.stats()["kernel_launches"] >= 1
print("done")
"""


def test_a_process_without_v2_behavior(run_python):
    done = run_python(_GRAPH_MODE)
    assert done.stdout.endswith("done\n")
    assert "compiling failed" not in done.stderr
