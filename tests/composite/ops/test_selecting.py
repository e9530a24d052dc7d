"""A kernel that meets a wrong index leaves the error to TensorFlow; an op without one is named."""

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite.ops.selecting_ops import factorials, selected_rows

TABLE = np.arange(60, dtype=np.float32).reshape(6, 10)


def test_right_indices_take_the_kernel() -> None:
    rows = np.array([0, 5, 5, 2], np.int32)
    before = composite.stats()
    with composite.options(backend="tvm"):
        found = selected_rows(TABLE, rows)
    since = composite.stats() - before
    np.testing.assert_array_equal(found, TABLE[rows] * 2)
    assert since["kernel_launches"] == 1 and since["expansion_runs"] == 0


@pytest.mark.parametrize("wrong", [6, -1, 1 << 30])
def test_a_wrong_index_is_tensorflows_error(wrong: int) -> None:
    rows = np.array([0, 5, wrong, 2], np.int32)
    with pytest.raises(tf.errors.InvalidArgumentError) as expected:
        tf.gather(TABLE, rows)
    before = composite.stats()
    traced = tf.function(selected_rows)
    for call in (selected_rows, traced):
        with (
            composite.options(backend="tvm"),
            pytest.raises(tf.errors.InvalidArgumentError, match=f"= {wrong} is not in"),
        ):
            call(TABLE, rows)
    assert f"= {wrong} is not in" in str(expected.value)
    since = composite.stats() - before
    assert since["kernel_errors"] == since["expansion_runs"] == 2
    with composite.options(backend="tvm"):  # the next call works
        np.testing.assert_array_equal(selected_rows(TABLE, rows % 6), TABLE[rows % 6] * 2)


def test_explain_names_the_op_that_no_kernel_covers() -> None:
    told = composite.explain(factorials, TABLE)
    assert told.path == "expansion"
    assert "not in the kernel table: Lgamma" in told.reason
    with composite.options(backend="tvm"), pytest.raises(tf.errors.FailedPreconditionError):
        factorials(TABLE)
