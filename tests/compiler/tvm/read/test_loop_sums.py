"""Work that leaves a loop: products for all trips at once, and sums over them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.loop import Loop
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.read.cells import (
    cells,
    loop_of,
    lstm,
    numbers,
    over,
    products,
    simple_rnn,
)


def test_what_leaves_the_loop() -> None:
    read, loop = loop_of(lstm, cells(8, 6, 32, 48, 4))
    assert len(products(loop.following)) == 4  # a gate each, of what is carried
    (before,) = [t for t in products(read.outputs) if t not in products(loop.following)]
    assert before.shape == (8 * 6, 4 * 48)  # the sequence's, for all steps at once


@pytest.mark.parametrize("steps", [4, "s1"])
@pytest.mark.parametrize(("cell", "gates"), [(simple_rnn, 1), (lstm, 4)])
def test_gradients(compiler: Any, cell: Any, gates: int, steps: int | str) -> None:
    """TensorFlow's gradient of a loop: one that appends to lists, one that takes off them."""
    arrays = cells(3, 4, 5, 24, gates)

    def gradients(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = cell(*inputs)[0]
            loss = tf.reduce_sum(y * tf.cos(y))
        return tape.gradient(loss, inputs)

    shapes = [(3, steps, 5), *(a.shape for a in arrays[1:])]
    compiler.compare(tf.function(gradients), *arrays, shapes=shapes, rtol=2e-4, atol=2e-6)


def test_sums_of_all_trips_leave_the_loop() -> None:
    arrays = cells(3, 4, 5, 24, 4)

    def gradients(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(lstm(*inputs)[0])
        return tape.gradient(loss, inputs)

    specs = [tf.TensorSpec(a.shape) for a in arrays]
    read = read_function(library_of(gradients, specs), [a.shape for a in arrays])
    order = topological(read.outputs)
    loops = [t.node for t in order if isinstance(t.node, Loop)]
    inside = [products(loop.following) for loop in loops]
    assert sorted(map(len, inside)) == [1, 4]
    # The sequence's, and the gradients of the sequence and both weights: all steps at once.
    assert len(products(read.outputs)) == 4


def test_a_sum_of_products_under_another_shape(compiler: Any) -> None:
    def outer(x: Any) -> Any:
        def step(t: Any, total: Any) -> Any:
            row = x[t : t + 1]
            return (total + tf.reshape(tf.matmul(row, row, transpose_a=True), [1, 3, 3]),)

        return over(4, step, tf.zeros([1, 3, 3]))

    compiler.compare(outer, *numbers((4, 3)), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("bounds", [(1, 6), (2, 5), (0, 4)])
def test_places_that_no_trip_visits_have_no_gradient(
    compiler: Any, bounds: tuple[int, int], dtype: Any
) -> None:
    first, last = bounds

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = x[:, first]
            for t in tf.range(first, last):
                total = tf.tanh(total) * x[:, t]
            loss = tf.reduce_sum(total * total)
        return tape.gradient(loss, x)

    (x,) = numbers((3, 6, 4), dtype=dtype)
    tolerance = 2e-5 if dtype == np.float32 else 4e-2
    compiler.compare(tf.function(gradient), x, rtol=tolerance, atol=tolerance)
