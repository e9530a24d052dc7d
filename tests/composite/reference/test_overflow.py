"""Which results have no known value: of sums that overflow in one order and not in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.reference.source import Source
from tests.compiler.tvm.conftest import library_of

LARGEST = float(np.finfo(np.float32).max)


def undetermined(function: Callable[..., Any], *rows: Any, dtype: Any = np.float32) -> list[bool]:
    inputs = [np.array(row, dtype) for row in rows]
    library = library_of(function, [tf.TensorSpec(x.shape, x.dtype) for x in inputs])
    _, (reference,) = Source(library).run(inputs)
    return [bool(x) for x in np.ravel(reference.undetermined())]


def total(x: Any) -> Any:
    return tf.reduce_sum(x, -1)


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ([1e38, 1e38, 1e38], False),
        ([3e38, 3e38, -3e38], True),
        ([3e38, 3e38, 3e38, -3e38], False),  # infinite in any order
        ([-3e38, -3e38, -1e38], False),
        ([3e38] * 4 + [-3e38] * 2, True),  # a NaN, if those of one sign are added up first
        ([-3e38, -3e38, np.inf], True),  # so is this
        ([1e38, 1.0, np.inf], False),
        ([np.inf, -np.inf, 1.0], False),
        ([np.nan, 1e38, 1e38], False),
    ],
)
def test_magnitudes_that_add_up_to_too_much(row: list[float], wanted: bool) -> None:
    assert undetermined(total, [row]) == [wanted]


def test_what_is_computed_of_such_a_sum_is_not_known_either() -> None:
    row = [[3e38, 3e38, -3e38], [1.0, 2.0, 3.0]]
    assert undetermined(lambda x: tf.sqrt(total(x)) + 1.0, row) == [True, False]
    assert undetermined(lambda x: tf.tanh(total(x)) * 0.0, row) == [True, False]


def test_each_element_has_its_own_sum() -> None:
    def products(x: Any, y: Any) -> Any:
        return tf.linalg.matvec(x, y)

    assert undetermined(products, [[1e30, -1e30], [1e20, 1e20]], [1e15, 1e15]) == [True, False]


def test_what_comes_of_any_value_is_known() -> None:
    assert undetermined(lambda x: tf.where(x > 0.0, total(x), 2.0), [3e38, -3e38]) == [True, False]


def test_what_is_subtracted_is_a_term_too() -> None:
    def subtracted(x: Any, y: Any) -> Any:
        return tf.tensor_scatter_nd_sub(x, [[0], [0], [1]], y)

    assert undetermined(subtracted, [3e38, 1.0], [3e38, -3e38, 1.0]) == [True, False]
    assert undetermined(subtracted, [3e38, 1.0], [1e37, np.inf, 1.0]) == [False, False]


def test_an_infinity_among_sums_that_overflow() -> None:
    row = [[3e38, 3e38, 0.0], [1.0, np.inf, 2.0], [1.0, 2.0, 3.0]]
    assert undetermined(total, row) == [False, False, False]


def test_products_of_many_terms() -> None:
    def product(x: Any) -> Any:
        return tf.reduce_prod(x, -1)

    assert undetermined(product, [[1e30, 1e30, 1e-30, 1e-30], [1e10, 1e10, 1e10, 2.0]]) == [
        True,
        False,
    ]


def test_padding_times_infinity() -> None:
    """TensorFlow multiplies it in the gradients of some convolutions, others leave it out."""

    def gradient(x: Any, dy: Any) -> Any:
        return tf.raw_ops.Conv3DBackpropFilterV2(
            input=x,
            filter_sizes=[3, 1, 1, 1, 1],
            out_backprop=dy,
            strides=[1] * 5,
            padding="SAME",
        )

    x = np.ones([1, 3, 1, 1, 1], np.float32)
    x[0, 0] = np.inf
    found = undetermined(gradient, x, np.ones_like(x))
    own = gradient(x, np.ones_like(x)).numpy().ravel()
    assert found == [bool(np.isnan(y)) for y in own]
    assert own[0] == np.inf  # a term of it, in any order
    assert not found[0]


def test_a_pool_of_volumes_skips_nans_or_what_is_before_them() -> None:
    def largest(x: Any) -> Any:
        return tf.nn.max_pool3d(x, 2, 2, "VALID")

    x = np.arange(16, dtype=np.float32).reshape([1, 4, 2, 2, 1])
    assert undetermined(largest, x) == [False, False]
    x[0, 0, 1, 1] = np.nan
    assert undetermined(largest, x) == [True, False]


def test_doubles_have_room() -> None:
    assert undetermined(total, [[3e38, 3e38, -3e38]], dtype=np.float64) == [False]
    assert undetermined(total, [[1.5e308, 1.5e308, -1.5e308]], dtype=np.float64) == [True]


def test_ops_that_only_look_at_one_element_decide_nothing() -> None:
    assert undetermined(lambda x: x * 2.0 - x, [3e38, 1.0]) == [False, False]


def test_the_largest_of_nans_is_the_lowest_number_in_the_reference() -> None:
    def largest(x: Any) -> Any:
        return tf.nn.max_pool2d(x, 2, 2, "VALID")

    x = np.full([1, 4, 2, 1], np.nan, np.float32)
    x[0, 0, 0, 0] = x[0, 1] = x[0, 0, 1] = 1.0
    own, (reference,) = Source(library_of(largest, [tf.TensorSpec(x.shape)])).run([x])
    np.testing.assert_array_equal(own[0], reference.exact)
    assert reference.exact.min() == -LARGEST
