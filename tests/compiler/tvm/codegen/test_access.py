"""Elements are computed as the author's ops are: a result is rounded before another op reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from composite.compiler.tvm import Target
from composite.compiler.tvm.show import show
from tests import draws
from tests.compiler.tvm.conftest import library_of

# Each is zero for equal inputs, as long as both products are rounded or neither is.
DIFFERENCES: dict[str, Callable[[Any, Any], Any]] = {
    "of products": lambda x, y: x * x - y * y,
    "of squares": lambda x, y: tf.square(x) - tf.square(y),
    "of powers": lambda x, y: tf.pow(x, 3.0) - tf.pow(y, 3.0),
    "of reshaped products": lambda x, y: tf.reshape(x * x, [7, -1]) - tf.reshape(y * y, [7, -1]),
    "of a product and a sliced one": lambda x, y: (x * x)[1:] - (y * y)[1:],
    "of products and a third": lambda x, y: (x * y - x * x) * 3.0 - (y * x - y * y),
    "in a reduction": lambda x, y: tf.reduce_sum(x * x - y * y),
    "of sums of products": lambda x, y: tf.reduce_sum(x * x) - tf.reduce_sum(y * y),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("what", DIFFERENCES)
def test_the_difference_of_equal_products_is_zero(compiler: Any, what: str, dtype: Any) -> None:
    x = np.linspace(0.1, 3, 1001).astype(dtype)
    loaded = compiler.compile(DIFFERENCES[what], [x, x], target=Target.of("x86-64-v3", 2))
    (result,) = loaded([x, x], [DIFFERENCES[what](x, x).shape], [dtype])
    assert not result.any(), result[result != 0][:4]


def features(table: Any, words: Any, numbers: Any) -> Any:
    """Rows of a table that words name, in one row, and numbers behind them."""
    found = tf.gather(table, words)
    flat = tf.reshape(found, [tf.shape(words)[0], words.shape[1] * table.shape[1]])
    return tf.concat([flat, numbers], 1) * 2.0


@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    width=st.sampled_from([1, 3, 8, 16, 17, 24, 32, 40]),
    numbers=st.integers(0, 20),
    batch=st.sampled_from([None, "s0"]),
)
@draws.kernels(25)
def test_vectors_of_rows_that_a_reshape_puts_side_by_side(
    compiler: Any, sizes: tuple[int, int], width: int, numbers: int, batch: str | None
) -> None:
    rows, words = sizes
    random = np.random.default_rng(0)
    table = random.standard_normal((7, width)).astype(np.float32)
    found = random.integers(0, 7, (rows, words)).astype(np.int32)
    beside = random.standard_normal((rows, numbers)).astype(np.float32)
    shapes = [(7, width), (batch or rows, words), (batch or rows, numbers)]
    compiler.compare(features, table, found, beside, shapes=shapes)


@pytest.mark.parametrize("place", [0, 5])
def test_an_index_of_such_a_vector_is_checked(compiler: Any, place: int) -> None:
    words = np.zeros((2, 6), np.int32)
    words[1, place] = 7
    arrays = [np.ones((7, 16), np.float32), words, np.ones((2, 5), np.float32)]
    loaded = compiler.compile(features, arrays)
    with pytest.raises(AssertionError, match="refused its arguments"):
        loaded(arrays, [(2, 101)], [np.float32])


def test_a_row_of_a_table_is_loaded_as_a_vector() -> None:
    shapes = [(7, 16), (2, 6), (2, 5)]
    kinds = [tf.float32, tf.int32, tf.float32]
    specs = [tf.TensorSpec(*each) for each in zip(shapes, kinds, strict=True)]
    text = show(library_of(features, specs), shapes, "tir", Target.of("x86-64-v4", 2))
    assert re.search(r"= in0_flat\[T\.Ramp\(found_\d+ \* T\.int64\(16\)", text)
