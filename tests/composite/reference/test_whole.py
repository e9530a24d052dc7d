"""Expansions that run as one graph, held against the same node by node."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from composite.ops import functions
from composite.reference import source, whole
from composite.reference.evaluate import Evaluator, evaluate
from tests.compiler.tvm.conftest import library_of

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def recurrent(x: Any) -> Any:
    def step(i: Any, state: Any, kept: Any) -> Any:
        state = tf.tanh(tf.matmul(state, state, transpose_b=True) @ x * 0.1 + x)
        return i + 1, state, kept.write(i, tf.reduce_sum(state))

    kept = tf.TensorArray(tf.float32, 20)
    _, state, kept = tf.while_loop(lambda i, *_: i < 20, step, (0, x, kept))
    return state, kept.stack()


def chosen(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: x - 1.0)


@pytest.mark.parametrize("body", [recurrent, chosen])
def test_the_results_are_those_of_the_nodes_bit_for_bit(body: Any) -> None:
    made = functions.body(library_of(body, [tf.TensorSpec(X.shape)]))
    run = whole.Whole(made)
    for x in (X, -X):
        for found, expected in zip(run.run([x]), evaluate(made, [x]), strict=True):
            np.testing.assert_array_equal(found, expected.numpy())


def test_a_cast_to_a_small_integer_is_evaluated_node_by_node() -> None:
    specs = [tf.TensorSpec(X.shape)]
    for dtype, same in ((tf.int8, False), (tf.int32, True)):
        body = functions.body(library_of(lambda x, to=dtype: tf.cast(x, to), specs))
        assert whole.gives_the_same(body) == same


def test_an_expansion_that_has_run_long_runs_as_one_graph() -> None:
    with mock.patch.object(source, "_MOST_STEPS", 50):
        made = source.Source(library_of(recurrent, [tf.TensorSpec(X.shape)]))
        first, (reference, _) = made.run([X])
        assert made.takes_long
        with mock.patch.object(Evaluator, "run", side_effect=AssertionError):
            again, (other, _) = made.run([X.copy()])
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(other.exact, reference.exact, rtol=1e-14)


def test_an_op_that_fails_raises_its_error() -> None:
    def gathered(x: Any) -> Any:
        return tf.gather(x, tf.cast(x[0, 0], tf.int32))

    made = functions.body(library_of(gathered, [tf.TensorSpec(X.shape)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
        whole.Whole(made).run([np.full_like(X, 1e6)])
