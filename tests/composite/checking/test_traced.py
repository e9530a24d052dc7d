"""A function as a graph of TensorFlow's ops, composites in it included."""

import numpy as np
import pytest
import tensorflow as tf

from composite.checking.compare import Difference, Reruns, compare
from composite.checking.traced import Traced, in_double, moved, traced, undetermined
from tests.composite.checking import ops

X = np.array([5, 6, 7.5, 8.5], np.float32)


def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(x)
    return [tape.gradient(y, x)]


def of_composite(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.saturated(x)
    return [tape.gradient(y, x)]


@pytest.mark.parametrize("function", [slope, of_composite])
def test_where_a_function_saturates_its_last_bits_decide_the_gradient(function):
    graph = Traced(function, [X])
    exact = 1 - np.tanh(X.astype(np.float64)) ** 2
    np.testing.assert_allclose(graph.in_double()[0], exact, rtol=1e-6)
    runs = np.stack([run[0] for run in graph.moved()])
    spread = runs.max(axis=0) - runs.min(axis=0)
    # Some ulps of tanh, each twice as much in the gradient, whatever is left of that.
    ulp = float(np.finfo(np.float32).eps)
    assert (spread > 2 * ulp).all() and (spread < 32 * ulp).all()
    assert (runs == [run[0] for run in graph.moved()]).all()


def test_a_sum_that_overflows_in_one_order_has_no_known_value():
    x = np.array([[3e38, 3e38, -3e38, 1.0], [1.0, 2.0, 3.0, 4.0]], np.float32)
    graph = Traced(lambda x: [tf.reduce_sum(x, -1), x * 0.5], [x])
    sums, products = graph.undetermined()
    assert sums.tolist() == [True, False] and not products.any()
    wanted = [np.array([3e38, 10], np.float32), x * np.float32(0.5)]
    found = [np.array([np.inf, 10], np.float32), wanted[1]]
    with pytest.raises(Difference, match="output 0 has a infinity in 1 other places"):
        compare(found, wanted)
    compare(found, wanted, reruns=Reruns(undetermined=graph.undetermined))
    found[0][1] = np.inf
    with pytest.raises(Difference, match="output 0 has a infinity in 1 other places"):
        compare(found, wanted, reruns=Reruns(undetermined=graph.undetermined))


def test_a_captured_array_is_an_input_and_a_variable_is_none():
    held = tf.constant([2.0])
    graph = Traced(lambda x: [x * held], [X])
    np.testing.assert_array_equal(graph.in_double()[0], 2 * X.astype(np.float64))
    variable = tf.Variable([2.0])
    assert traced(lambda x: [x * variable], [X]) is None


def test_what_has_no_graph_has_no_other_results():
    graph = traced(lambda x: [x if x[0] > 0 else -x], [X])
    assert graph is None and list(moved(graph)) == [] and undetermined(graph) == []
    assert in_double(graph, [X])[0] is X


def test_an_op_without_a_kernel_for_float64_leaves_the_fallback():
    def function(x):
        ones = tf.ones([4])
        image = tf.reshape(x, [1, 1, 1, 4])
        return [tf.compat.v1.nn.fused_batch_norm(image, ones, ones)[0]]

    fallback = [X.reshape([1, 1, 1, 4])]
    assert in_double(traced(function, [X]), fallback)[0] is fallback[0]


@pytest.mark.parametrize(("n", "is_empty"), [(0, True), (1, False)])
def test_an_empty_product_inside_of_a_function_is_seen(n, is_empty):
    graph = Traced(lambda x: [x[:, :n] @ tf.transpose(x)[:n]], [X.reshape([2, 2])])
    assert graph.has_empty_product() == is_empty
    assert not Traced(lambda x: [x[:, :n]], [X.reshape([2, 2])]).has_empty_product()
