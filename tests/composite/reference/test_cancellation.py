"""Sums of which roundings decide whether anything is left."""

import numpy as np
import pytest
import tensorflow as tf

from composite.reference import cancellation


def _run(inputs):
    return [tf.reduce_sum(inputs[0], axis=1)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sum_that_is_no_larger_than_its_roundings_is_zero(dtype):
    eps = np.finfo(dtype).eps
    rows = [[1.0, -1.0, eps, 0.0], [1.0, -1.0, 10 * eps, 0.0], [1e-9, 0.0, 0.0, 0.0], [0.0] * 4]
    x = tf.constant(np.array(rows, dtype))
    given = [x, tf.constant(1)]
    (found,) = cancellation.without_rest("Sum", _run, given, _run(given))
    np.testing.assert_array_equal(found, [0.0, *_run([x[1:]])[0].numpy()])


def test_infinities_and_nans_stay_and_so_do_other_ops():
    x = tf.constant([[np.inf, -1.0], [np.nan, 1.0], [np.inf, -np.inf]])
    given = [x, tf.constant(1)]
    (found,) = cancellation.without_rest("Sum", _run, given, _run(given))
    np.testing.assert_array_equal(found, [np.inf, np.nan, np.nan])
    results = [tf.constant([1e-30])]
    assert cancellation.without_rest("Mul", _run, [x], results) is results


def test_integers_stay():
    x = tf.constant([[1, -1], [2, 1]])
    given = [x, tf.constant(1)]
    (found,) = cancellation.without_rest("Sum", _run, given, _run(given))
    np.testing.assert_array_equal(found, [0, 3])
