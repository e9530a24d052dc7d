"""Which outputs may lie in an input's memory, and that their kernels are right there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.kernels import verify
from tests.compiler.tvm.conftest import library_of

Dims = tuple[int | str, ...]
FULL: Dims = (24, 256)
_DTYPES = {"i": tf.int32}


def forwards(function: Callable[..., Any], *shapes: Dims, dtype: Any = tf.float32) -> Any:
    names = inspect.signature(function).parameters
    specs = [
        tf.TensorSpec([d if isinstance(d, int) else None for d in s], _DTYPES.get(name, dtype))
        for name, s in zip(names, shapes, strict=True)
    ]
    return backend.compile(library_of(function, specs), shapes).forwards


def descent(x: Any, y: Any, w: Any) -> Any:
    """A step down a gradient that is a product."""
    return w - tf.matmul(x, y, transpose_a=True) * 0.1


def adam(x: Any, y: Any, m: Any, v: Any, w: Any) -> Any:
    gradient = tf.matmul(x, y, transpose_a=True)
    m, v = m + (gradient - m) * 0.1, v + (tf.square(gradient) - v) * 0.001
    return m, v, w - m * 0.01 / (tf.sqrt(v) + 1e-7)


def steps(x: Any, y: Any, w: Any) -> Any:
    """Of two layers: the first layer's gradient is made with the weights of the second."""
    back = tf.matmul(y, w, transpose_b=True)
    return descent(x, y, w), tf.tanh(tf.matmul(x, back, transpose_a=True))


def late(x: Any, y: Any, w: Any) -> Any:
    """The new weights are multiplied with the old ones."""
    new = descent(x, y, w)
    return new, tf.matmul(new, w, transpose_b=True)


def chosen(t: Any, x: Any, y: Any, w: Any) -> Any:
    """Where the index is out of range, TensorFlow's ops need all inputs as they were."""
    new = descent(x, y, w)
    return new, tf.gather(t, tf.cast(new, tf.int32))


ROWS: list[Dims] = [(40, 96), (40, 64)]
WEIGHTS: Dims = (96, 64)

TAKEN: dict[str, tuple[Callable[..., Any], list[Dims], list[list[int]]]] = {
    "one input": (lambda x: tf.tanh(x) * x, [FULL], [[0]]),
    "either of two": (lambda x, y: x * y + x, [FULL, FULL], [[0, 1]]),
    "each of two results": (lambda x, y: (x * y, x - y), [FULL, FULL], [[0, 1], [0, 1]]),
    "not what is repeated": (lambda x, b: x + b, [FULL, (256,)], [[0]]),
    "not what every element reads": (lambda x, s: x * s, [FULL, ()], [[0]]),
    "any number of rows": (lambda x: tf.nn.relu(x) + 1.0, [("s0", 256)], [[0]]),
    "another shape": (lambda x: tf.reshape(x * 2.0, [256, 24]), [FULL], [[0]]),
    "rows shorter than a vector": (lambda x: x + 1.0, [(3,)], [[0]]),
    "what others read later": (lambda x: x[::-1] + x, [FULL], []),
    "transposed": (lambda x: tf.transpose(x) + 1.0, [FULL], []),
    "moved": (lambda x: tf.concat([x[1:], x[:1]], 0) + x, [FULL], []),
    "less its row's largest": (lambda x: x - tf.reduce_max(x, 1, keepdims=True), [FULL], [[0]]),
    "less a row's largest in each column": (
        lambda x: x - tf.reduce_max(x, 1), [(64, 64)], [],
    ),
    "reduced": (lambda x: tf.reduce_max(x, 1), [FULL], []),
    "less its column's largest": (lambda x: x - tf.reduce_max(x, 0), [FULL], []),
    "rows that end within a vector": (lambda x: x + 1.0, [(101,)], []),
    "rows of any size": (lambda x: x + 1.0, [("s0",)], []),
    "another dtype": (lambda x: tf.cast(x, tf.int32), [FULL], []),
    "a step behind a product": (descent, [*ROWS, WEIGHTS], [[2]]),
    "all of an optimizer's": (adam, [*ROWS, *[WEIGHTS] * 3], [[2, 3, 4]] * 3),
    "what a stage reads that can be in front": (steps, [*ROWS, WEIGHTS], [[2], []]),
    "what a later stage reads": (late, [*ROWS, WEIGHTS], []),
    "columns that end within a vector": (
        descent, [(40, 96), (40, 60), (96, 60)], [],
    ),
    "a factor of the product": (lambda w: w - w @ w * 0.1, [(64, 64)], []),
    "behind what is not the last stage": (
        lambda x, y, z: (tf.tanh(tf.matmul(x, y)), z * 2.0),
        [(32, 32), (32, 32), FULL], [[], [2]],
    ),
    "behind an index that may be wrong": (
        lambda t, i, x, y, w: (tf.gather(t, i), descent(x, y, w)),
        [(9,), FULL, *ROWS, WEIGHTS], [[], [4]],
    ),
    "in front of an index that may be wrong": (
        chosen,
        [(9,), *ROWS, WEIGHTS], [],
    ),
    "an index that may be wrong": (
        lambda x, t: tf.gather(t, tf.cast(x, tf.int32)) + x, [FULL, (9,)], [[0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_may_be_taken_over(name: str) -> None:
    function, shapes, wanted = TAKEN[name]
    found = forwards(function, *shapes)
    assert found == wanted or (not wanted and not any(found))


@pytest.mark.parametrize("rows", [1, 7, 40])
@pytest.mark.parametrize("over", [0, 1])
def test_the_result_is_the_same(tmp_path: Path, rows: int, over: int) -> None:
    """Also by several tasks, in rows that are cut into parts."""

    def function(x: Any, y: Any) -> Any:
        return tf.tanh(x) * y + tf.exp(-y * y), x - y * 0.5

    shape = (rows, 33 * 64)
    specs = [tf.TensorSpec([None, shape[1]])] * 2
    classes = [("s0", shape[1])] * 2
    kernel = backend.compile(library_of(function, specs), classes, name="in_place")
    assert kernel.forwards == [[0, 1], [0, 1]]
    path = tmp_path / "in_place.so"
    backend.link(kernel, path, runtime=None)
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape).astype(np.float32) for _ in range(2)]
    kept = [x.copy() for x in inputs]
    apart = verify.run_kernel(path, kernel.name, inputs, inputs, 3)
    for output in (0, 1):
        found = verify.run_kernel(path, kernel.name, inputs, inputs, 3, over={output: over})
        for one, wanted in zip(found, apart, strict=True):
            assert one.tobytes() == wanted.tobytes()
    both = verify.run_kernel(path, kernel.name, inputs, inputs, 3, over={0: over, 1: 1 - over})
    assert [y.tobytes() for y in both] == [y.tobytes() for y in apart]
    assert [x.tobytes() for x in inputs] == [x.tobytes() for x in kept]


@pytest.mark.parametrize("columns", [64, 48, 208])
@pytest.mark.parametrize("rows", [96, 50])
def test_variables_behind_a_product(tmp_path: Path, rows: int, columns: int) -> None:
    """Blocks and vectors of any number: none is made twice."""
    weights = (rows, columns)
    shapes: list[tuple[int, ...]] = [(40, rows), (40, columns), weights, weights, weights]
    target = backend.Target.of("x86-64-v3", 4)
    specs = [tf.TensorSpec(shape) for shape in shapes]
    kernel = backend.write(library_of(adam, specs), shapes, target=target).generate("behind")
    assert kernel.forwards == [[2, 3, 4]] * 3
    path = tmp_path / "behind.so"
    backend.link(kernel, path, runtime=None)
    random = np.random.default_rng(0)
    inputs = [np.abs(random.standard_normal(shape)).astype(np.float32) for shape in shapes]
    outputs = [inputs[2]] * 3
    apart = verify.run_kernel(path, kernel.name, inputs, outputs, 1)
    for over in ({0: 2, 1: 3, 2: 4}, {0: 4, 1: 2, 2: 3}):
        found = verify.run_kernel(path, kernel.name, inputs, outputs, 3, over=over)
        assert [y.tobytes() for y in found] == [y.tobytes() for y in apart]
    wanted = [y.numpy() for y in adam(*map(tf.constant, inputs))]
    for one, other in zip(apart, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
