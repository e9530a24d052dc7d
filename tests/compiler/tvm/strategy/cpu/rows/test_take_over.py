"""Results over rows that lie in an input: which may, and that they are the same there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.kernels import verify
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.strategy.cpu.rows.test_rows import layer_norm, softmax

Dims = tuple[int | str, ...]
ROWS: Dims = ("s0", 100)


def softmax_gradient(y: Any, dy: Any) -> Any:
    return (dy - tf.reduce_sum(dy * y, -1, keepdims=True)) * y


def masked(x: Any, mask: Any) -> Any:
    return softmax(x) * mask


def distances(x: Any, y: Any) -> Any:
    most = tf.reduce_max(y, -1, keepdims=True)
    return x - most, tf.exp(x) * most, tf.reduce_sum(x, -1)


def over_two(x: Any) -> Any:
    mean = tf.reduce_mean(x, [1, 2], keepdims=True)
    return (x - mean) * tf.math.rsqrt(tf.reduce_mean(tf.square(x - mean), [1, 2], keepdims=True))


CASES: dict[str, tuple[Callable[..., Any], list[Dims], list[list[int]]]] = {
    "the exponentials are kept in the result": (softmax, [ROWS], [[0]]),
    "rows of whole vectors": (softmax, [("s0", 128)], [[0]]),
    "weights of one row": (layer_norm, [ROWS, (100,), (100,)], [[0]]),
    "either of two": (softmax_gradient, [ROWS, ROWS], [[0, 1]]),
    "not what is read after the first write": (masked, [ROWS, ROWS], [[0]]),
    "several results": (distances, [ROWS, ROWS], [[0, 1], [0, 1], []]),
    "rows of two dims": (over_two, [("s0", 3, 37)], [[0]]),
    "rows that are computed side by side": (softmax, [("s0", 7)], []),
    "rows that may be cut into pieces": (softmax, [("s0", 40000)], []),
    "as many rows as columns": (softmax, [(100, 100)], [[0]]),
    "one value a row": (lambda x: tf.reduce_sum(x, -1), [ROWS], []),
    "another row": (lambda x: softmax(x) + x[::-1], [ROWS], []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_in_an_input_are_the_same(name: str, tmp_path: Path) -> None:
    function, shapes, wanted = CASES[name]
    specs = [tf.TensorSpec([d if isinstance(d, int) else None for d in s]) for s in shapes]
    kernel = backend.compile(library_of(function, specs), shapes, name="rows")
    assert kernel.forwards == wanted or (not wanted and not any(kernel.forwards))
    path = tmp_path / "rows.so"
    backend.link(kernel, path, runtime=None)
    random = np.random.default_rng(0)
    sizes = [tuple(5 if isinstance(d, str) else d for d in s) for s in shapes]
    inputs = [random.standard_normal(size).astype(np.float32) for size in sizes]
    expected = [y.numpy() for y in tf.nest.flatten(function(*map(tf.constant, inputs)))]
    apart = verify.run_kernel(path, kernel.name, inputs, expected)
    for found, exact in zip(apart, expected, strict=True):
        np.testing.assert_allclose(found, exact, rtol=2e-5, atol=2e-5)
    for output, taken in enumerate(wanted):
        for over in taken:
            there = verify.run_kernel(path, kernel.name, inputs, expected, 3, over={output: over})
            assert [y.tobytes() for y in there] == [y.tobytes() for y in apart]
