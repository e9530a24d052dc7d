"""Stacks of updated parts of a tensor are updates of the tensor, written where it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops as xla

from composite.binding import settings as options
from tests.runtime import kernel_support as k
from tests.runtime.regions.test_partition import ops, regions

UPDATE = "CompositeUpdateSlices"
LAYERS, ROWS, WIDTH = 3, 6, 4
CACHE = tf.TensorSpec([2, LAYERS, 2, ROWS, WIDTH])
STEP = [CACHE, tf.TensorSpec([2, WIDTH]), tf.TensorSpec([], tf.int32)]


def layer(cache: Any, x: Any, i: Any) -> tuple[Any, Any]:
    """Attention, roughly: what a layer makes, and its cache of keys and values."""
    key = xla.xla_dynamic_update_slice(cache[:, 0], tf.tanh(x)[:, None], [0, i, 0])
    value = xla.xla_dynamic_update_slice(cache[:, 1], tf.sin(x)[:, None], [0, i, 0])
    weights = tf.nn.softmax(tf.linalg.matvec(key, x))
    return tf.linalg.matvec(value, weights, transpose_a=True) + x, tf.stack([key, value], axis=1)


def step(cache: Any, x: Any, i: Any) -> tuple[Any, Any]:
    caches = []
    for number in range(LAYERS):
        x, updated = layer(cache[:, number, ...], x, i)
        caches.append(updated)
    return x, tf.stack(caches, axis=1)


def numbers(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def given(i: int = 2) -> list[Any]:
    return [numbers(*CACHE.shape), numbers(2, WIDTH), tf.constant(i)]


def compare(body: Callable[..., Any], *inputs: Any) -> None:
    wanted = tf.nest.flatten(tf.function(body, autograph=False)(*inputs))
    with options.options(regions=True):
        found = tf.nest.flatten(tf.function(body, autograph=False)(*inputs))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_each_layer_updates_the_cache_that_the_next_one_reads() -> None:
    function, _ = regions(step, *STEP)
    made = [node for node in function.node_def if node.op == UPDATE]
    assert [list(node.attr["places"].list.i) for node in made] == [
        [number, 0, number, 1] for number in range(LAYERS)
    ]
    for node in made:
        assert list(node.attr["axes"].list.i) == [1, 2]
        assert list(node.attr["sizes"].list.i) == [LAYERS, 2]
    assert made[1].input[0] == f"{made[0].name}:updated:0"
    assert not ops(function)["XlaDynamicUpdateSlice"]
    packs = [node for node in function.node_def if node.op == "Pack"]
    assert {node.attr["T"].type for node in packs} == {tf.int32.as_datatype_enum}  # where to


@pytest.mark.parametrize("place", [0, 2, ROWS - 1, -3, ROWS, 100])
def test_results_are_tensorflow_s(place: int) -> None:
    """A slice that would lie outside is moved to the edge."""
    compare(step, *given(place))


def test_what_a_caller_has_keeps_its_values() -> None:
    inputs = given()
    before = inputs[0].numpy().copy()
    compare(step, *inputs)
    np.testing.assert_array_equal(inputs[0], before)


def test_who_reads_the_tensor_before_sees_what_it_was() -> None:
    def body(cache: Any, x: Any, i: Any) -> Any:
        result, updated = step(cache, x, i)
        return result, updated, tf.reduce_sum(cache, axis=3), cache[:, 1] * 2.0

    compare(body, *given())


def test_who_reads_parts_sees_them_updated() -> None:
    def body(cache: Any, x: Any, i: Any) -> Any:
        first, one = layer(cache[:, 0], x, i)
        second, two = layer(cache[:, 1], first, i)
        third, three = layer(cache[:, 2], second, i)
        return tf.stack([one, two, three], axis=1), one, two * 2.0, third

    function, _ = regions(body, *STEP)
    assert ops(function)[UPDATE] == LAYERS
    compare(body, *given())


def in_a_loop(cache: Any, x: Any, i: Any) -> Any:
    def trip(i: Any, cache: Any, x: Any) -> tuple[Any, Any, Any]:
        x, cache = step(cache, x, i)
        return i + 1, cache, tf.math.lgamma(x)  # no kernel has it: no region has the loop

    return tf.while_loop(lambda i, *_: i < ROWS, trip, (i, cache, x))


def test_a_loop_writes_the_cache_where_it_lies() -> None:
    """All updates but the first one: what the loop is given is its caller's."""
    compare(in_a_loop, *given())
    function = tf.function(in_a_loop, autograph=False)
    with options.options(regions=True):
        before = k.stats()["in_place_updates"]
        function(*given(0))
        written = k.stats()["in_place_updates"] - before
    assert written == ROWS * LAYERS - 1


def test_trips_that_keep_what_was_before() -> None:
    """A trip's caller of the cache of the trip before it sees that."""

    def looped(cache: Any, x: Any, i: Any) -> Any:
        def trip(i: Any, cache: Any, last: Any, x: Any) -> tuple[Any, ...]:
            x, updated = step(cache, x, i)
            return i + 1, updated, cache, x

        return tf.while_loop(lambda i, *_: i < ROWS, trip, (i, cache, cache, x))

    compare(looped, *given())


def caches_apart(cache: Any, x: Any, i: Any) -> Any:
    """Parts along one dim that is not the first one, each needed by the next."""
    parts = []
    for number in range(LAYERS):
        part = xla.xla_dynamic_update_slice(cache[:, number], x[:, None, None], [0, 1, i, 0])
        x = tf.tanh(x + tf.reduce_sum(part, axis=[1, 2]))
        parts.append(part)
    return tf.stack(parts, axis=1)


def test_parts_of_one_stack_that_need_each_other_are_apart() -> None:
    function, _ = regions(caches_apart, *STEP)
    assert ops(function)[UPDATE] == LAYERS
    compare(caches_apart, *given())


def some(cache: Any, x: Any, i: Any, places: list[int], axis: int = 1) -> Any:
    parts = [
        xla.xla_dynamic_update_slice(cache[:, place], x[:, None, None], [0, 0, i, 0])
        for place in places
    ]
    return tf.stack(parts, axis=axis)


@pytest.mark.parametrize(
    ("places", "axis", "updates"),
    [
        ([0, 1, 2], 1, 1),
        ([0, 1], 1, 1),  # the others are left out
        ([1, 0, 2], 1, 0),
        ([0, 1, 1], 1, 0),
        ([1, 2], 1, 0),
        ([0, 1, 2], 0, 0),
    ],
)
def test_stacks_of_other_parts(places: list[int], axis: int, updates: int) -> None:
    def body(cache: Any, x: Any, i: Any) -> Any:
        return some(cache, x, i, places, axis)

    function, _ = regions(body, *STEP)
    assert ops(function)[UPDATE] == updates
    compare(body, *given())


def test_a_part_made_of_a_later_one_stays() -> None:
    def body(cache: Any, x: Any, i: Any) -> Any:
        update = xla.xla_dynamic_update_slice
        last = update(cache[:, 1], x[:, None, None], [0, 0, i, 0])
        first = update(cache[:, 0], last[:, :1, :1] * 2.0, [0, 0, i, 0])
        return tf.stack([first, last], axis=1)

    function, _ = regions(body, *STEP)
    assert not ops(function)[UPDATE]
    compare(body, *given())


def test_an_update_of_two_stacks() -> None:
    def body(cache: Any, x: Any, i: Any) -> Any:
        update = xla.xla_dynamic_update_slice
        parts = [
            update(cache[:, n], x[:, None, None] + float(n), [0, 0, i, 0]) for n in range(LAYERS)
        ]
        return tf.stack(parts, axis=1), tf.stack(parts, axis=1) * 2.0

    compare(body, *given())
