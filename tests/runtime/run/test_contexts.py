"""Nodes of composites in functions, branches, loops, datasets and sessions.

Runs a second time at intra = inter = 1 thread: see test_process.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.run.conftest import Counted


def close(actual: Any, inputs: dict[str, Any]) -> None:
    np.testing.assert_allclose(actual, k.dense_reference(**inputs), rtol=1e-5, atol=1e-5)


def in_function(op: str, inputs: dict[str, Any]) -> Any:
    return k.graph_function(op)(**inputs)


def in_cond(op: str, inputs: dict[str, Any]) -> Any:
    @tf.function
    def run(flag: Any) -> Any:
        return tf.cond(flag, lambda: k.call(op, inputs), lambda: -k.call(op, inputs))

    return run(tf.constant(True))


def in_while(op: str, inputs: dict[str, Any]) -> Any:
    @tf.function
    def run(n: Any) -> Any:
        start = (tf.constant(0), tf.zeros_like(k.dense_reference(**inputs)))
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, k.call(op, inputs)), start)[1]

    return run(tf.constant(3))


def in_map(op: str, inputs: dict[str, Any]) -> Any:
    data = tf.data.Dataset.from_tensors(inputs).repeat(4)
    mapped = data.map(lambda element: k.call(op, element), num_parallel_calls=2)
    return list(mapped)[-1]


def in_session(op: str, inputs: dict[str, Any]) -> Any:
    with tf.Graph().as_default():
        holders = {
            name: tf.compat.v1.placeholder(tf.float32, value.shape)
            for name, value in inputs.items()
        }
        feed = {holders[name]: value.numpy() for name, value in inputs.items()}
        y = k.call(op, holders)
        with tf.compat.v1.Session() as session:
            session.run(y, feed)
            return session.run(y, feed)


CONTEXTS = [in_function, in_cond, in_while, in_map, in_session]


@pytest.mark.parametrize("context", CONTEXTS)
def test_expansion_in_context(
    dense: tuple[str, str], context: Callable[[str, dict[str, Any]], Any]
) -> None:
    inputs = k.dense_inputs(6)
    np.testing.assert_allclose(
        context(dense[0], inputs), k.dense_reference(**inputs), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("context", CONTEXTS)
def test_kernel_in_context(
    fused: str, counted: Counted, context: Callable[[str, dict[str, Any]], Any]
) -> None:
    inputs = k.dense_inputs(6)
    close(context(fused, inputs), inputs)
    assert counted["kernel_launches"] >= 1
    assert counted["expansion_runs"] == 0
