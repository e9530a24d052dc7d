"""Which outputs may lie in an input's memory, and that their kernels are right there."""

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

Dims = tuple[int | str, ...]
FULL: Dims = (24, 256)


def forwards(function: Callable[..., Any], *shapes: Dims, dtype: Any = tf.float32) -> Any:
    specs = [tf.TensorSpec([d if isinstance(d, int) else None for d in s], dtype) for s in shapes]
    return backend.compile(library_of(function, specs), shapes).forwards


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
    "an index that may be wrong": (
        lambda x, t: tf.gather(t, tf.cast(x, tf.int32)) + x, [FULL, (9,)], [],
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
