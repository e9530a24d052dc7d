"""Expansions in the places of composites: where the pass is broken, the composites stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.checking.test_graph_check import WAYS, break_graphs, invalid
from tests.runtime.tensorflow.test_graph_pass import Op, graph_ops, inputs, numbers

v1 = tf.compat.v1
Unique = Callable[[str], str]


@pytest.fixture
def op(unique: Unique) -> Op:
    return Op(unique("Checked"), _composite_backend="tf")


@pytest.fixture(params=WAYS)
def broken(request: pytest.FixtureRequest, op: Op) -> Iterator[str]:
    break_graphs(request.param)
    yield request.param
    break_graphs("")


def repeated(op: Callable[..., Any], x: Any, w: Any, b: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, op(y, w, b)), [0, x])[1]


def test_a_function_keeps_its_composites(broken: str, op: Op) -> None:
    before = invalid()
    run = tf.function(op)
    assert op.name in graph_ops(run, *inputs())
    assert invalid() == before + 1
    np.testing.assert_allclose(run(*inputs()), op.oracle(*inputs()), rtol=1e-6)


def test_what_a_loop_runs_keeps_its_composites(broken: str, op: Op) -> None:
    before = invalid()
    run = tf.function(lambda x, w, b: repeated(op, x, w, b))
    assert op.name in graph_ops(run, *inputs())
    assert invalid() == before + 1
    np.testing.assert_allclose(run(*inputs()), repeated(op.oracle, *inputs()), rtol=1e-5)


def test_a_session_keeps_its_composites(broken: str, op: Op) -> None:
    before = invalid()
    with tf.Graph().as_default(), v1.Session() as session:
        found = session.run(op(*(tf.constant(value) for value in numbers())))
    np.testing.assert_allclose(found, op.oracle(*inputs()), rtol=1e-6)
    assert invalid() == before + 1


def test_the_next_function_is_expanded(op: Op) -> None:
    break_graphs("input")
    tf.function(op)(*inputs())
    break_graphs("")
    before = invalid()
    assert op.name not in graph_ops(tf.function(op), *inputs())
    assert op.name not in graph_ops(tf.function(lambda *x: repeated(op, *x)), *inputs())
    assert invalid() == before
