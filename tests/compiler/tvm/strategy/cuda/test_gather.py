"""Gathers on a GPU made of threads: an index out of range reads 0, as TensorFlow's do on GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered
from tests.gpu.shim.cases import Case, written
from tests.gpu.shim.emulator import Emulator

TABLE = np.arange(1.0, 36.0, dtype=np.float32).reshape(7, 5)
INDICES = np.array([[0, 6, 7], [-1, 3, 2], [100, -(2**31), 2**31 - 1]], np.int32)
IN_RANGE = (INDICES >= 0) & (len(TABLE) > INDICES)


def rows(table: Any, indices: Any) -> Any:
    return tf.gather(table, indices) * 2.0 + 1.0


def sums(table: Any, indices: Any) -> Any:
    """A bag of embeddings."""
    return tf.reduce_sum(tf.gather(table, indices), 1)


def elements(table: Any, indices: Any) -> Any:
    return tf.gather_nd(table, tf.stack([indices, indices - 1], -1))


def columns(table: Any, indices: Any) -> Any:
    return tf.gather(table, indices[0], axis=1)


def _clipped(table: np.ndarray) -> np.ndarray:
    taken = table[np.clip(INDICES, 0, len(table) - 1)] if len(table) else 0.0
    return np.where(IN_RANGE[..., None] & (len(table) > 0), taken, np.zeros((3, 3, 5), np.float32))


def _elements(table: np.ndarray) -> np.ndarray:
    found = np.zeros(INDICES.shape, np.float32)
    for place, i in np.ndenumerate(INDICES):
        if 0 <= i < 7 and 0 <= i - 1 < 5:
            found[place] = table[i, i - 1]
    return found


def _columns(table: np.ndarray) -> np.ndarray:
    found = np.zeros((len(table), 3), np.float32)
    for j, i in enumerate(INDICES[0]):
        if 0 <= i < 5:
            found[:, j] = table[:, i]
    return found


def _doubled(table: np.ndarray) -> np.ndarray:
    return _clipped(table) * 2 + 1


def _sums(table: np.ndarray) -> np.ndarray:
    return _clipped(table).sum(1)


@pytest.mark.parametrize(
    ("function", "wanted", "size"),
    [
        (rows, _doubled, 7),
        (rows, _doubled, 0),
        (sums, _sums, 7),
        (sums, _sums, 0),
        (elements, _elements, 7),
        (columns, _columns, 7),
    ],
)
def test_an_index_out_of_range_reads_0(
    function: Callable[..., Any], wanted: Callable[..., Any], size: int, tmp_path: Any
) -> None:
    shapes: list[list[int | str]] = [["s0", 5], [3, 3]]
    case = Case(function, shapes, "", dtypes=[np.float32, np.int32])
    kernel = written("gathered", case)
    table = TABLE[:size]
    expected = np.asarray(wanted(table), np.float32)
    (found,) = Emulator([kernel], tmp_path).run(kernel, [table, INDICES], shapes, [expected.dtype])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_tensorflow_does_not_answer_with_0_has_no_kernel() -> None:
    """The loss of a label that is no class is NaN on GPUs; nothing is divided by 0."""
    loss = Case(
        lambda x, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x),
        [[4, 9], [4]],
        "",
        dtypes=[np.float32, np.int32],
    )
    rest = Case(lambda x, y: x // y, [[8], [8]], "", dtypes=[np.int32])
    for case in (loss, rest):
        with pytest.raises(NotCovered, match="a check that may fail the call"):
            written("refused", case)
