"""Scalar inputs whose values are sizes: kernels that know them, and answers that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered
from composite.compiler.tvm.read.obstacles import obstacles, with_sizes
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

X = np.arange(24, dtype=np.float32).reshape(4, 6)
I = np.array([3, -1, 0, 3, 2, 4], np.int32)  # noqa: E741

BODIES: dict[str, Callable[..., Any]] = {
    "segments": lambda x, i, n: tf.math.unsorted_segment_sum(tf.transpose(x), i, n),
    "range": lambda x, i, n: tf.cast(tf.range(n), x.dtype)[:, None] * x[0],
    "fill": lambda x, i, n: tf.fill([n, 2], x[0, 1]),
    "zeros": lambda x, i, n: tf.zeros([2, n]) + x[0, 0],
    "one-hot": lambda x, i, n: tf.one_hot(i, n, on_value=x[1, 1], off_value=x[0, 0]),
    "arithmetic": lambda x, i, n: tf.fill([2 * n + 1], x[1, 0]) + tf.cast(n, x.dtype),
    "broadcast": lambda x, i, n: tf.broadcast_to(x[0], [n, 6]),
    "tile": lambda x, i, n: tf.tile(x, [n, 1]),
    "scatter": lambda x, i, n: tf.scatter_nd([[0], [3]], x[:2], [n, 6]),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_value_is_a_size(compiler: Any, name: str) -> None:
    for dtype in (np.int32, np.int64) if name == "range" else (np.int32,):
        loaded = compiler.compare(
            BODIES[name], X, I, dtype(5), shapes=[X.shape, I.shape, ("s0",)], sizes=[2]
        )
        assert loaded.kernel.proof.is_complete, loaded.kernel.proof


def test_a_size_that_would_be_negative_is_not_covered(compiler: Any) -> None:
    def rows(x: Any, n: Any) -> Any:
        return tf.reduce_sum(tf.fill([n - 3, 2], x[0, 0]))

    loaded = compiler.compare(rows, X, np.int32(5), shapes=[X.shape, ("s0",)], sizes=[1])
    assert loaded.kernel.minimums == [3]
    with pytest.raises(NotCovered, match="out of range"):
        compiler.compile(rows, [X, np.zeros(2, np.int32)], sizes=[1])


def test_a_known_value_divides(compiler: Any) -> None:
    """That the rest of a reshape leaves no remainder is known of a number alone."""

    def rows(x: Any, n: Any) -> Any:
        return tf.reshape(x, [n, -1]) * 2

    compiler.compare(rows, X, np.int32(3), sizes=[1])
    with pytest.raises(NotCovered, match="are not known to fill"):
        compiler.compile(rows, [X, np.int32(3)], [X.shape, ("s0",)], sizes=[1])


def test_equal_sizes_are_one_symbol(compiler: Any) -> None:
    """Messages of edges summed at nodes, as many as another input has rows."""

    def nodes(messages: Any, to: Any, n: Any, x: Any) -> Any:
        return tf.math.unsorted_segment_sum(messages, to, n) + x

    arrays = (np.ones((7, 3), np.float32), np.arange(7, dtype=np.int32) % 4, np.int32(4))
    shapes = [("s0", 3), ("s0",), ("s1",), ("s1", 3)]
    compiler.compare(nodes, *arrays, np.ones((4, 3), np.float32), shapes=shapes, sizes=[2])
    given = [("s0", 3), ("s0",), (), ("s1", 3)]
    specs = [tf.TensorSpec([None] * len(s), tf.int32) for s in given]
    specs[0] = specs[3] = tf.TensorSpec([None, 3])
    found = with_sizes(library_of(nodes, specs), given)
    assert found == ([("s0", 3), ("s0",), ("s1",), ("s1", 3)], [2])


def _specs(*arrays: Any) -> list[tf.TensorSpec]:
    return [tf.TensorSpec(np.shape(a), a.dtype) for a in arrays]


@pytest.mark.parametrize("name", BODIES)
def test_the_answer_asks_for_the_value(name: str) -> None:
    library = library_of(BODIES[name], _specs(X, I, np.int32(5)))
    shapes = [X.shape, I.shape, ()]
    with pytest.raises(NotCovered, match="computed at run time") as answer:
        read_function(library, shapes)
    assert answer.value.sizes == (2,)
    assert with_sizes(library, shapes) == ([X.shape, I.shape, ("s0",)], [2])
    assert not obstacles(library, [X.shape, I.shape, ("s0",)], [2])


@pytest.mark.parametrize(
    "body",
    [
        lambda x, n: x[n:],  # places vary from call to call
        lambda x, n: tf.reduce_sum(x, axis=n),
        lambda x, n: tf.roll(x, n, 0),
        lambda x, n: tf.fill([tf.cast(x[0, 0], tf.int32) + n], x[0, 0]),  # of data as well
    ],
)
def test_no_other_value_is_asked_for(body: Any) -> None:
    library = library_of(body, _specs(X, np.int32(1)))
    with pytest.raises(NotCovered) as answer:
        read_function(library, [X.shape, ()])
    assert answer.value.sizes == ()
