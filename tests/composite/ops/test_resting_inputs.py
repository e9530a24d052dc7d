"""Weights that eager calls pass as inputs are packed once they rest, never where they change."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.kernels import produce, verdicts
from tests.unmeasured import kernels_serve

MANY = 200  # calls, after which inputs that rest are known, and so is that they rest
K, N = 96, 80
VERDICT = verdicts.verdict  # which measures


def new_op(name: str) -> Any:
    @Composite(name, inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
    def dense(x, w, b):
        return tf.tanh(tf.matmul(x, w) + b)

    return dense


@pytest.fixture(autouse=True)
def _unmeasured() -> Iterator[None]:
    """What is slower on a busy machine is packed as well."""
    with kernels_serve():
        yield


@pytest.fixture
def op(request: pytest.FixtureRequest) -> Any:
    """An op of which nothing is known."""
    name = "".join(c for c in request.node.name.title() if c.isalnum())
    return new_op(f"Resting{name}")


def normal(*shape: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return tf.constant(random.standard_normal(shape).astype(np.float32))


def check(op: Any, x: Any, w: Any, b: Any) -> None:
    found = op(x, w, b)
    expected = np.tanh(x.numpy().astype(np.float64) @ w.numpy() + b.numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def repeat(call: Callable[[int], None], times: int = MANY) -> None:
    """Calls, while kernels come."""
    for i in range(times):
        call(i)
        if i % 40 == 39:
            composite.wait()


def packed() -> int:
    return int(composite.stats()["packed_constants"])


def test_weights_that_rest(op: Any) -> None:
    w, b, before = normal(K, N, seed=1), normal(N, seed=2), packed()
    repeat(lambda i: check(op, normal(24, K, seed=i), w, b))
    assert packed() == before + 1


def test_a_call_that_is_timed(op: Any) -> None:
    """Nothing changes: the first input is none of the weights."""
    x, w, b, before = normal(24, K), normal(K, N, seed=1), normal(N, seed=2), packed()
    repeat(lambda _: check(op, x, w, b))
    assert packed() == before + 1
    for i in range(20):
        check(op, normal(24, K, seed=i), w, b)
    assert packed() == before + 1


def test_a_call_of_few_numbers_that_is_timed(op: Any) -> None:
    """Too small an input to be packed is still what is computed on: the weights are all packed."""
    x, w, b, before = normal(1, K), normal(K, N, seed=1), normal(N, seed=2), packed()
    repeat(lambda _: check(op, x, w, b))
    assert packed() == before + 1


def test_other_weights_are_other_results(op: Any) -> None:
    x, w, b = normal(24, K), normal(K, N, seed=1), normal(N, seed=2)
    repeat(lambda _: check(op, x, w, b))
    before = packed()
    for i in range(40):
        check(op, x, normal(K, N, seed=i), b)
    assert packed() == before
    repeat(lambda _: check(op, x, w, b))


def test_weights_after_others_that_rested_for_long(op: Any) -> None:
    """As those of a model that is built again: to pack them is as soon worth it."""
    x, b = normal(24, K), normal(N, seed=2)
    for i in range(3):
        w, before = normal(K, N, seed=i), packed()
        repeat(lambda _, w=w: check(op, x, w, b), 60)  # type: ignore[misc]
        assert packed() == before + 1
        repeat(lambda _, w=w: op(x, w, b))  # type: ignore[misc]


def test_weights_that_change_now_and_then(op: Any) -> None:
    """Each time they are waited for longer."""
    x, b = normal(24, K), normal(N, seed=2)
    repeat(lambda _: check(op, x, normal(K, N), b), 1)
    before = packed()
    for i in range(30):
        w = normal(K, N, seed=i)
        repeat(lambda _, w=w: op(x, w, b), 60)  # type: ignore[misc]
    assert packed() <= before + 8  # 4, but what is idle for seconds is forgotten


def test_weights_that_rest_again_after_some_that_changed(op: Any) -> None:
    """Once some rested for so long that it was worth packing them, the next are not waited for."""
    x, b, counts = normal(24, K), normal(N, seed=2), []
    for i, calls in enumerate([MANY, *[60] * 4, 300, 60]):
        w, before = normal(K, N, seed=i), packed()
        repeat(lambda _, w=w: op(x, w, b), calls)  # type: ignore[misc]
        counts.append(packed() - before)
    assert counts == [1, 1, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("calls", [10, 25, 60, 120])
def test_weights_that_change_once_are_packed_soon(op: Any, calls: int) -> None:
    """Whenever that is: also just before it is told which inputs rest."""
    x, b, own = normal(24, K), normal(N, seed=2), [normal(K, N, seed=i) for i in range(2)]
    repeat(lambda _: op(x, own[0], b), calls)
    before = packed()
    repeat(lambda _: check(op, x, own[1], b), 2 * MANY)
    assert packed() > before


@pytest.mark.parametrize("count", [2, 7])
def test_layers_that_take_turns(op: Any, count: int) -> None:
    layers, before, b = [normal(K, N, seed=i) for i in range(count)], packed(), normal(N, seed=2)
    repeat(lambda i: check(op, normal(24, K, seed=i), layers[i % count], b), 3 * MANY)
    assert packed() == before + count
    other = normal(K, N, seed=count)
    check(op, normal(24, K), other, b)
    repeat(lambda i: check(op, normal(24, K, seed=i), layers[i % count], b), 2 * count)
    assert packed() == before + count


def test_too_many_layers_take_turns(op: Any) -> None:
    layers, before, b = [normal(K, N, seed=i) for i in range(20)], packed(), normal(N, seed=2)
    repeat(lambda i: check(op, normal(24, K, seed=i), layers[i % 20], b), 3 * MANY)
    assert packed() == before


def test_a_layer_that_is_gone_is_let_go(op: Any) -> None:
    layers, b = [normal(K, N, seed=i) for i in range(2)], normal(N, seed=2)
    before = int(composite.stats()["packed_bytes"])
    repeat(lambda i: op(normal(24, K, seed=i), layers[i % 2], b), 2 * MANY)
    both = int(composite.stats()["packed_bytes"]) - before
    assert both > 0
    layers.pop()
    repeat(lambda i: check(op, normal(24, K, seed=i), layers[0], b), 600)
    assert int(composite.stats()["packed_bytes"]) - before == both // 2


def test_weights_that_lie_where_others_lay(op: Any) -> None:
    """Memory that is given back is given out again."""
    x, b, before = normal(24, K), normal(N, seed=2), packed()
    repeat(lambda i: check(op, x, normal(K, N, seed=i), b))
    assert packed() == before


def test_small_weights_are_not_packed(op: Any) -> None:
    w, b, before = normal(8, 4, seed=1), normal(4, seed=2), packed()
    repeat(lambda i: check(op, normal(24, 8, seed=i), w, b))
    assert packed() == before


def test_what_is_no_product_has_no_weights() -> None:
    @Composite("RestingSum", inputs=["x: float", "y: float"], outputs=["z: float"])
    def total(x, y):
        return tf.tanh(x) + y

    x, y, before = normal(24, K), normal(24, K, seed=1), composite.stats()["requests"]
    repeat(lambda _: np.testing.assert_allclose(total(x, y), np.tanh(x) + y, rtol=1e-5, atol=1e-5))
    assert composite.stats()["requests"] == before + 1


def test_products_are_found_wherever_they_are(op: Any) -> None:
    @Composite("RestingOuter", inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
    def outer(x, w, b):
        return op(x, w, b) + 1.0

    @Composite("RestingOperator", inputs=["x: float", "w: float"], outputs=["y: float"])
    def product(x, w):
        return x @ w

    w, b = normal(K, N, seed=1), normal(N, seed=2)
    for call in (lambda x: outer(x, w, b), lambda x: product(x, w)):
        before = packed()
        repeat(lambda i, call=call: call(normal(24, K, seed=i)))  # type: ignore[misc]
        assert packed() == before + 1


def test_what_is_looked_at_is_let_go(op: Any) -> None:
    w, b = normal(K, N, seed=1), normal(N, seed=2)
    gone: list[Any] = []
    for i in range(3 * MANY):
        x = normal(24, K, seed=i)
        gone.append(weakref.ref(x))
        op(x, w, b)
        del x
    gc.collect()
    assert [one for one in gone if one() is not None] == []


def test_tapes(op: Any) -> None:
    w, b = normal(K, N, seed=1), normal(N, seed=2)

    def step(i: int) -> None:
        x = normal(24, K, seed=i)
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = op(x, w, b)
        expected = x.numpy().T @ (1.0 - y.numpy() ** 2)
        np.testing.assert_allclose(tape.gradient(y, w), expected, rtol=1e-4, atol=1e-4)

    repeat(step)


def captured(op: Any, layers: list[tuple[Any, Any]]) -> Any:
    """A function of ``x`` whose layers' weights are tensors that it captures."""

    def run(x: Any) -> Any:
        for w, b in layers:
            x = op(x, w, b)
        return x

    return tf.function(run, autograph=False)


def test_tensors_that_a_function_captures(op: Any) -> None:
    layers = [(normal(K, K, seed=i) / K, normal(K, seed=i)) for i in range(3)]
    function, before = captured(op, layers), packed()

    def step(i: int) -> None:
        expected = x = normal(24, K, seed=i % 7)
        for w, b in layers:
            expected = tf.tanh(tf.matmul(expected, w) + b)
        np.testing.assert_allclose(function(x), expected, rtol=1e-5, atol=1e-5)

    repeat(step)
    assert packed() == before + len(layers)


def test_arguments_of_a_function_that_change_now_and_then(op: Any) -> None:
    function, before = tf.function(op, autograph=False), packed()
    for seed in range(4):
        w, b = normal(K, N, seed=seed), normal(N, seed=seed)
        repeat(lambda i, w=w, b=b: check(function, normal(24, K, seed=i), w, b))  # type: ignore[misc]
    assert packed() > before


def test_weights_that_change_within_a_loop_of_a_function(op: Any) -> None:
    """What is an argument of the loop's body is another tensor in each trip."""
    w, b = normal(K, K, seed=1) / K, normal(K, seed=2)

    @tf.function
    def run(x: Any, w: Any) -> Any:
        for _ in tf.range(3):
            x = op(x, w, b)
            w *= 0.5
        return x

    def step(i: int) -> None:
        expected = x = normal(24, K, seed=i % 7)
        for k in range(3):
            expected = tf.tanh(tf.matmul(expected, w * 0.5**k) + b)
        np.testing.assert_allclose(run(x, w), expected, rtol=1e-5, atol=1e-5)

    repeat(step)


def test_a_kernel_is_measured_with_inputs_that_stay_the_same() -> None:
    """What measures it is no caller whose weights are worth packing, and its graph stays valid."""
    measured = new_op("RestingMeasured")
    x = normal(24, K)
    w, b = normal(K, N, seed=1), normal(N, seed=2)
    with mock.patch.object(produce, "verdict", VERDICT):
        before = composite.stats()
        measured(x, w, b)
        composite.wait()
        after = composite.stats()
    assert after["answered"] == before["answered"] + 1
    assert after["requests"] == before["requests"] + 1
    assert after["invalid_graphs"] == before["invalid_graphs"]
