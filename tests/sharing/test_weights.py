"""Weights that are packed are those of the call, whoever shares their memory or writes to it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.sharing.sides import aligned
from tests.unmeasured import kernels_serve

SIZE, CALLS = 64, 240
X = tf.random.stateless_normal([8, SIZE], [1, 2])


@pytest.fixture(autouse=True, scope="module")
def _served() -> Iterator[None]:
    with kernels_serve():
        yield


@pytest.fixture
def op(request: pytest.FixtureRequest) -> Any:
    """An op of whose calls nothing is known."""
    name = "".join(c for c in request.node.name.title() if c.isalnum())
    return new_op(f"Memory{name}")


def new_op(name: str) -> Any:
    @Composite(name, inputs=["x: float", "w: float"], outputs=["y: float"])
    def dense(x, w):
        return tf.tanh(tf.matmul(x, w))

    return dense


def normal(*shape: int, seed: int = 0) -> Any:
    return tf.random.stateless_normal(shape, [seed, 3])


def call_in_turn(op: Any, weights: list[Any], calls: int = CALLS) -> None:
    """Each result is that of its weights."""
    for number in range(calls):
        if number % 40 == 39:
            composite.wait()
        w = weights[number % len(weights)]
        wanted = np.tanh(X.numpy() @ np.asarray(w))
        np.testing.assert_allclose(op(X, w), wanted, rtol=1e-4, atol=1e-5)


def counted(name: str = "packed_constants") -> int:
    return int(composite.stats()[name])


@pytest.mark.parametrize(
    "parts",
    [
        tf.unstack,
        lambda t: [tf.reshape(one, [SIZE, SIZE]) for one in tf.split(t, 4)],
        lambda t: [t[i] for i in range(4)],
    ],
    ids=["unstack", "split", "index"],
)
def test_parts_of_one_tensor_take_turns(op: Any, parts: Callable[[Any], list[Any]]) -> None:
    weights, before = parts(normal(4, SIZE, SIZE)), counted()
    call_in_turn(op, weights)
    assert counted() == before + 4


def test_parts_that_are_taken_in_each_call(op: Any) -> None:
    """Each time as other objects, of the same memory."""
    whole, before = normal(4, SIZE, SIZE), counted()
    for number in range(CALLS):
        if number % 40 == 39:
            composite.wait()
        wanted = np.tanh(X.numpy() @ whole.numpy()[number % 2])
        np.testing.assert_allclose(op(X, whole[number % 2]), wanted, rtol=1e-4, atol=1e-5)
    assert counted() == before + 2


def test_one_memory_in_two_shapes(op: Any) -> None:
    w, x = normal(SIZE, 4 * SIZE), normal(8, 4 * SIZE)
    other = tf.reshape(w, [4 * SIZE, SIZE])
    for number in range(2 * CALLS):
        if number % 40 == 39:
            composite.wait()
        np.testing.assert_allclose(op(X, w), np.tanh(X.numpy() @ w.numpy()), rtol=1e-4, atol=1e-5)
        wanted = np.tanh(x.numpy() @ other.numpy())
        np.testing.assert_allclose(op(x, other), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("of_part", [False, True])
def test_an_array_that_came_by_dlpack_is_read_in_each_call(op: Any, of_part: bool) -> None:
    array = aligned((4, SIZE, SIZE))
    array[:] = normal(4, SIZE, SIZE).numpy()
    shared = array if of_part else array[1]
    w = tf.experimental.dlpack.from_dlpack(shared.__dlpack__())
    weights, before = [w[1]] if of_part else [w], counted()
    call_in_turn(op, weights)
    array *= -0.5
    call_in_turn(op, weights, 4)
    assert counted() == before


def test_a_variable_that_shares_an_array_is_read_in_each_call(op: Any) -> None:
    array = aligned((SIZE, SIZE))
    array[:] = normal(SIZE, SIZE).numpy()
    variable = tf.Variable(tf.zeros([SIZE, SIZE]))
    variable.assign(tf.experimental.dlpack.from_dlpack(array.__dlpack__()))
    call = tf.function(lambda: op(X, variable))
    for factor in (1.0, -0.5):
        array *= factor
        for number in range(CALLS):
            if number % 40 == 39:
                composite.wait()
            wanted = np.tanh(X.numpy() @ array)
            np.testing.assert_allclose(call(), wanted, rtol=1e-4, atol=1e-5)


def test_a_tensor_that_shares_an_array_of_the_users(op: Any) -> None:
    """TensorFlow 2.21's own class shares one that is aligned; its functions copy it before."""
    from tensorflow.python.framework import ops

    array = aligned((SIZE, SIZE))
    array[:] = normal(SIZE, SIZE).numpy()
    w = ops.EagerTensor(array, "/job:localhost/replica:0/task:0/device:CPU:0", None)
    before = counted()
    call_in_turn(op, [w])
    array *= -0.5
    call_in_turn(op, [w], 4)
    assert counted() == before


def test_tensors_of_arrays_rest_wherever_numpy_has_put_them(op: Any) -> None:
    """TensorFlow shares the copy that it makes of an array if that is aligned."""
    random = np.random.default_rng(0)
    weights = [tf.constant(random.standard_normal([SIZE, SIZE], np.float32)) for _ in range(8)]
    before = counted()
    call_in_turn(op, weights, 3 * CALLS)
    assert counted() == before + 8


def test_memory_that_is_given_back_may_be_other_weights(op: Any) -> None:
    """At the same address, in the same shape."""
    call_in_turn(op, [normal(SIZE, SIZE)], CALLS)
    for seed in range(CALLS):
        w = normal(SIZE, SIZE, seed=seed)
        wanted = np.tanh(X.numpy() @ w.numpy())
        np.testing.assert_allclose(op(X, w), wanted, rtol=1e-4, atol=1e-5)
        del w


def test_weights_of_an_op_that_is_no_longer_called_are_let_go(op: Any) -> None:
    """After as many calls of another op, while the weights are still there."""
    other, before = new_op("MemoryOther"), counted("packed_bytes")
    weights = [normal(SIZE, SIZE, seed=i) for i in range(4)]
    call_in_turn(op, weights, 2 * CALLS)
    assert counted("packed_bytes") >= before + 4 * SIZE * SIZE * 4
    for _ in range(300):
        other(normal(2, 3), normal(3, 2))
    gc.collect()
    assert counted("packed_bytes") <= before
    call_in_turn(op, weights, 2 * CALLS)
    assert counted("packed_bytes") >= before + 4 * SIZE * SIZE * 4


def test_weights_of_a_graph_that_is_called_now_and_then_stay() -> None:
    """What comes between its calls is known after a few."""
    op, other = new_op("MemoryGraph"), new_op("MemoryBetween")
    w = np.asarray(normal(SIZE, SIZE))
    call, packs = tf.function(lambda: op(X, tf.constant(w))), []
    for _ in range(6):
        call()
        composite.wait()
        for _ in range(400):
            other(normal(2, 3), normal(3, 2))
        packs.append(counted())
    assert packs[-1] == packs[-2] == packs[-3]


def test_ops_that_write_whoever_holds_the_tensor(run_python: Any) -> None:
    """From then on nothing is packed in the process, nor is what was."""
    run_python(
        """
import numpy as np
import tensorflow as tf
import composite
from tests.sharing.test_weights import SIZE, X, call_in_turn, counted
from tests.sharing.test_weights import new_op, normal
from tests.unmeasured import kernels_serve
op = new_op("MemoryWritten")
with kernels_serve():
    w, variable = normal(SIZE, SIZE), tf.Variable(normal(SIZE, SIZE, seed=1))
    graph = tf.function(lambda: op(X, variable))
    call_in_turn(op, [w])
    for number in range(120):
        graph()
        if number % 40 == 39:
            composite.wait()
    assert counted() == 2, counted()
    rows = tf.range(SIZE)
    for add in (tf.raw_ops.InplaceUpdate, tf.raw_ops.InplaceAdd, tf.raw_ops.InplaceSub):
        add(x=w, i=rows, v=normal(SIZE, SIZE, seed=7))
        call_in_turn(op, [w], 60)
        add(x=variable.read_value(), i=rows, v=normal(SIZE, SIZE, seed=8))
        wanted = np.tanh(X.numpy() @ variable.numpy())
        np.testing.assert_allclose(graph(), wanted, rtol=1e-4, atol=1e-5)
    assert counted() == 2, counted()
"""
    )
