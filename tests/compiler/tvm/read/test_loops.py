"""Loops within kernels against TensorFlow's own: what is carried, written row by row, taken out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.show import show
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.read.cells import (
    cells,
    gru,
    gru_before,
    loop_of,
    lstm,
    numbers,
    over,
    products,
    put,
    rows,
    simple_rnn,
    stacked,
)

raw = tf.raw_ops


@pytest.mark.parametrize("size", [(1, 3, 16, 32), (5, 4, 7, 20), (9, 1, 33, 48), (2, 3, 5, 3)])
@pytest.mark.parametrize(("cell", "gates"), [(simple_rnn, 1), (lstm, 4)])
def test_cells(compiler: Any, cell: Any, gates: int, size: tuple[int, ...]) -> None:
    loaded = compiler.compare(cell, *cells(*size, gates), rtol=2e-5, atol=1e-6)
    assert "recurrence" in loaded.kernel.strategy


@pytest.mark.parametrize("tasks", [1, 2, 4])
def test_by_a_team(compiler: Any, tasks: int) -> None:
    for batch in (1, 2, 3, 6):
        arrays = cells(batch, 20, 24, 128, 4)
        # Twenty steps amplify a rounding: TensorFlow's own results are up to 2.7e-6 from the exact.
        loaded = compiler.compare(lstm, *arrays, rtol=2e-5, atol=4e-6, tasks=tasks)
        assert loaded.launches
        assert loaded.kernel.barriers


@pytest.mark.parametrize("constants", [(), (1, 2, 3)])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_few_rows_and_a_depth_that_is_not_whole_steps(
    compiler: Any, batch: int, constants: tuple[int, ...]
) -> None:
    arrays = cells(batch, 12, 9, 45, 4)
    compiler.compare(lstm, *arrays, rtol=2e-5, atol=1e-6, constants=constants)


@pytest.mark.parametrize("constants", [(), (1, 2, 3)])
def test_large_weights_are_packed_where_the_call_says_that_trips_are_many(
    compiler: Any, constants: tuple[int, ...]
) -> None:
    shapes = [(1, "s0", 8), (8, 2080), (520, 2080), (2080,)]
    for steps in (1, 5, 23, 24, 40):
        arrays = [array / 8 for array in cells(1, steps, 8, 520, 4)]
        compiler.compare(
            lstm, *arrays, shapes=shapes, rtol=2e-5, atol=1e-6, constants=constants, tasks=2
        )
    specs = [tf.TensorSpec([d if isinstance(d, int) else None for d in s]) for s in shapes]
    text = show(library_of(lstm, specs), shapes, "tir", backend.Target.host())
    _, branches = text.split("\n    if s0 >= T.int64(24):\n")
    many, few = branches.split("\n    else:\n")
    assert "packed" in many and "packed" not in few


def test_sizes_of_the_call(compiler: Any) -> None:
    shapes = [("s0", "s1", 24), (24, 128), (32, 128), (128,)]
    for batch, steps in ((1, 2), (4, 30), (13, 1)):
        arrays = cells(batch, steps, 24, 32, 4)
        compiler.compare(lstm, *arrays, shapes=shapes, rtol=2e-5, atol=1e-6)
    all_sizes = [("s0", "s1", "s2"), ("s2", "s3"), ("s4", "s4"), ("s4",)]
    arrays = cells(3, 4, 5, 6, 1)
    specs = [tf.TensorSpec([None] * a.ndim) for a in arrays]
    with pytest.raises(backend.NotCovered, match="broadcast"):  # s3 and s4 may differ
        backend.compile(library_of(simple_rnn, specs), all_sizes)


def test_no_trips(compiler: Any) -> None:
    x, k, r, b = cells(2, 3, 4, 5, 4)
    compiler.compare(lstm, x[:, :0], k, r, b)
    compiler.compare(
        lstm, x[:, :0], k, r, b, shapes=[("s0", "s1", 4), *(a.shape for a in (k, r, b))]
    )


def test_a_mask_backwards(compiler: Any) -> None:
    arrays = cells(5, 7, 6, 32, 3)
    mask = np.random.default_rng(1).random((5, 7)) < 0.7
    compiler.compare(gru, *arrays, mask, rtol=2e-5, atol=1e-6)


def test_two_stages_a_trip(compiler: Any) -> None:
    for size in (24, 96):
        arrays = numbers((4, 15, 8), (8, 2 * size), (size, 2 * size), (size, size))
        compiler.compare(gru_before, *arrays, rtol=3e-5, atol=1e-6)


def test_without_products(compiler: Any) -> None:
    """As a simple recurrent unit: only element-wise work depends on what is carried."""

    def sru(x: Any, w: Any, c: Any) -> Any:
        steps = x.shape[0]

        def step(t: Any, c: Any, ys: Any) -> Any:
            z, f = tf.split(x[t] @ w, 2, axis=1)
            f = tf.sigmoid(f)
            c = f * c + (1.0 - f) * z
            return c, put(ys, t, tf.tanh(c))

        c, ys = over(steps, step, c, rows(steps, c))
        return stacked(ys, c), c

    arrays = numbers((6, 3, 8), (8, 40), (3, 20))
    compiler.compare(sru, *arrays, rtol=2e-5, atol=1e-6)
    _, loop = loop_of(sru, arrays)
    assert not products(loop.following)  # all of them at once, before


def test_matrices_that_change(compiler: Any) -> None:
    """As a Kalman filter: products of what is carried with itself, and its transpose."""

    def filtered(measured: Any, a: Any, q: Any, p: Any) -> Any:
        def step(t: Any, x: Any, p: Any, ys: Any) -> Any:
            p = a @ p @ tf.transpose(a) + q
            gain = p / (1.0 + tf.reduce_sum(p, axis=1, keepdims=True))
            x = tf.linalg.matvec(a, x)
            x = x + tf.linalg.matvec(gain, measured[t] - x)
            return x, p - gain @ p, put(ys, t, x)

        _, p, ys = over(
            measured.shape[0], step, measured[0] * 0.0, p, rows(measured.shape[0], measured[0])
        )
        return stacked(ys, measured[0]), p

    arrays = [x * 0.5 for x in numbers((9, 6), (6, 6), (6, 6), (6, 6))]
    compiler.compare(filtered, *arrays, rtol=1e-4, atol=1e-6)


def test_numbers_that_a_trip_counts(compiler: Any) -> None:
    def sums(x: Any) -> Any:
        def step(t: Any, k: Any, down: Any, total: Any, power: Any) -> Any:
            total = total + tf.cast(k, tf.float32) * x[down] + tf.cast(t, tf.float32)
            return k + 3, down - 2, total, power * 2

        return over(4, step, 5, 7, x[0], 1)

    compiler.compare(sums, numbers((9, 37))[0], rtol=1e-6)


def test_conditions(compiler: Any) -> None:
    def counted(start: int, step: int, holds: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda x: tf.while_loop(
            lambda i, _: holds(i), lambda i, y: (i + step, y * 2.0 + 1.0), [start, x]
        )

    x = numbers((20,))[0]
    for start, step, holds in [
        (0, 1, lambda i: i <= 4),
        (0, 3, lambda i: i < 7),
        (9, -2, lambda i: i > 2),
        (9, -4, lambda i: i >= 1),
        (5, 1, lambda i: i < 3),
    ]:
        compiler.compare(counted(start, step, holds), x, rtol=1e-6)


def test_rows_that_are_not_set_are_zero(compiler: Any) -> None:
    def sparse(x: Any) -> Any:
        (ys,) = over(3, lambda t, ys: (put(ys, 2 * t, x[t]),), rows(7, x[0]))
        return stacked(ys, x[0])

    compiler.compare(sparse, numbers((5, 19))[0])


def test_rows_that_are_set_outside_of_the_loop(compiler: Any) -> None:
    def start(x: Any) -> Any:
        return put(rows(x.shape[0], x[0]), 0, x[0])

    def filled(x: Any) -> Any:
        def step(t: Any, ys: Any) -> Any:
            return (put(ys, t + 1, x[t + 1] * 2.0),)

        (ys,) = over(x.shape[0] - 1, step, start(x))
        return stacked(put(ys, 2, x[3]), x[0])

    def backwards(x: Any) -> Any:
        count = tf.shape(x)[0]
        ys = put(put(rows(count, x[0]), count - 1, x[0]), count - 1, x[1])
        (ys,) = over(count - 1, lambda t, ys: (put(ys, count - 2 - t, x[t] * 2.0),), ys)
        return stacked(ys, x[0])

    def whole(x: Any) -> Any:
        (ys,) = over(x.shape[0], lambda t, ys: (put(ys, t, x[t] * 2.0),), start(x))
        return stacked(ys, x[0])

    x = numbers((5, 19))[0]
    for function in (filled, backwards, whole):
        compiler.compare(function, x)
    compiler.compare(backwards, x, shapes=[("s0", 19)])
    compiler.compare(lambda x: stacked(put(start(x), 3, x[1]), x[0]), x)


def test_elements_whose_shape_the_first_one_tells(compiler: Any) -> None:
    def function(x: Any) -> Any:
        shape = tf.constant([-1, 19])
        ys = raw.TensorListReserve(element_shape=shape, num_elements=3, element_dtype=x.dtype)
        (ys,) = over(3, lambda t, ys: (put(ys, t, x[t]),), ys)
        return raw.TensorListStack(
            input_handle=ys, element_shape=shape, element_dtype=x.dtype, num_elements=3
        )

    compiler.compare(function, numbers((3, 4, 19))[0])


def test_several_bounds_on_the_trips(compiler: Any) -> None:
    """As TensorFlow writes `maximum_iterations`, which Keras' layers state."""

    def bounded(most: int | None) -> Callable[..., Any]:
        def halved(x: Any) -> Any:
            steps = tf.shape(x)[0]
            return tf.while_loop(
                lambda i, _: i < steps,
                lambda i, y: [i + 1, y * 0.5 + x[i]],
                [0, tf.zeros_like(x[0])],
                maximum_iterations=steps if most is None else most,
            )

        return halved

    (x,) = numbers((5, 7))
    for most in (None, 0, 3, 9):
        compiler.compare(bounded(most), x, rtol=1e-6)
    compiler.compare(bounded(None), x, shapes=[("s0", 7)], rtol=1e-6)
    library = library_of(bounded(3), [tf.TensorSpec([None, 7])])
    with pytest.raises(backend.NotCovered, match="which of .* trips are fewer is open"):
        backend.compile(library, [("s0", 7)])


def test_a_list_made_of_a_tensor(compiler: Any) -> None:
    def read(x: Any) -> Any:
        handle = raw.TensorListFromTensor(tensor=x, element_shape=tf.constant([19]))

        def step(t: Any, total: Any) -> Any:
            item = raw.TensorListGetItem(
                input_handle=handle, index=t, element_shape=[19], element_dtype=tf.float32
            )
            return (total + item * 2.0,)

        return over(5, step, x[0])

    compiler.compare(read, numbers((5, 19))[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_dtypes(compiler: Any, dtype: Any) -> None:
    if dtype == np.float64:
        arrays = numbers((3, 4, 5), (5, 24), (6, 24), (24,), dtype=dtype)
        compiler.compare(lstm, *arrays, rtol=1e-13, atol=1e-15)
        return
    x = np.arange(12, dtype=dtype).reshape(3, 4)
    compiler.compare(lambda x: over(3, lambda t, s: (s * 3 + x[t],), x[0]), x)


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3"])
def test_targets(compiler: Any, level: str) -> None:
    target = backend.Target.of(level, 2)
    arrays = cells(5, 6, 7, 40, 4)
    compiler.compare(lstm, *arrays, rtol=2e-5, atol=1e-6, target=target)


def test_constant_weights(compiler: Any) -> None:
    arrays = cells(8, 6, 32, 48, 4)
    loaded = compiler.compare(lstm, *arrays, rtol=2e-5, atol=1e-6, constants=[1, 2, 3])
    assert {p.source for p in loaded.kernel.packed} == {1, 2}


def test_not_covered() -> None:
    x = np.ones((4, 3), np.float32)

    def refused(function: Callable[..., Any], match: str) -> None:
        library = library_of(function, [tf.TensorSpec(x.shape)])
        with pytest.raises(backend.NotCovered, match=match):
            backend.compile(library, [x.shape])

    refused(
        lambda x: over(4, lambda t, s: (s + tf.reduce_sum(x[: t + 1]),), 0.0),
        "a size that changes from trip to trip",
    )
    refused(
        lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 9.0, lambda y: (y * 2.0,), [x]),
        "cannot be counted",
    )
    refused(
        lambda x: tf.while_loop(
            lambda i, _: i < 3,
            lambda i, y: (i + 1, tf.concat([y, x], 0)),
            [0, x],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])],
        ),
        "changes in a loop",
    )
    refused(lambda x: over(9, lambda t, y: (y + x[t],), x[0]), "out of range")

    def read_back(t: Any, ys: Any) -> Any:
        item = raw.TensorListGetItem(
            input_handle=ys, index=0, element_shape=[3], element_dtype=tf.float32
        )
        return (put(ys, t, item * 2.0),)

    refused(lambda x: stacked(over(4, read_back, rows(4, x[0]))[0], x[0]), "while it is written")
