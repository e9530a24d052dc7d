"""Calls with what is no tensor, by TensorFlow's dispatch; pins what TF 2.21 has for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.util import dispatch

from tests.composite.ops.dispatched_ops import dispatched_leaky

pytestmark = pytest.mark.usefixtures("expansions_only")


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor


MASKED = Masked(tf.constant([-2.0, 4.0]), tf.constant([True, False]))


@pytest.fixture
def masked() -> Iterator[None]:
    @tf.experimental.dispatch_for_api(dispatched_leaky, {"x": Masked})
    def leaky(x: Masked, bias: Any, *, slope: Any = 0.5, name: Any = None) -> Masked:
        return Masked(dispatched_leaky(x.values, bias, slope=slope, name=name), x.mask)

    yield
    tf.experimental.unregister_dispatch_for(leaky)


def both_ways(function: Any, *arguments: Any) -> list[Any]:
    return [function(*arguments), tf.function(function)(*arguments)]


@pytest.mark.usefixtures("masked")
def test_an_extension_type_is_taken_by_its_function() -> None:
    for y in both_ways(lambda x: dispatched_leaky(x, 1.0, slope=0.25), MASKED):
        np.testing.assert_array_equal(y.values, [-0.25, 5.0])
        np.testing.assert_array_equal(y.mask, MASKED.mask)
    np.testing.assert_array_equal(dispatched_leaky(bias=0.0, x=MASKED).values, [-1.0, 4.0])


@pytest.mark.usefixtures("masked")
def test_tensors_are_not_dispatched() -> None:
    for y in both_ways(lambda x: dispatched_leaky(x, 1.0), tf.constant([-2.0, 4.0])):
        np.testing.assert_array_equal(y, [-0.5, 5.0])


def test_a_type_of_which_nobody_knows_is_the_first_error() -> None:
    for way in (lambda f: f, tf.function):
        with pytest.raises((TypeError, ValueError), match="Masked"):
            way(lambda: dispatched_leaky(MASKED, 1.0))()


def test_ragged_tensors_by_the_api_and_flat() -> None:
    ragged = tf.ragged.constant([[-2.0], [4.0, 6.0]])

    @tf.experimental.dispatch_for_api(dispatched_leaky, {"x": tf.RaggedTensor})
    def leaky(x: Any, bias: Any, *, slope: Any = 0.5, name: Any = None) -> Any:
        return x.with_flat_values(dispatched_leaky(x.flat_values, bias, slope=slope, name=name))

    try:
        for y in both_ways(lambda x: dispatched_leaky(x, 0.0), ragged):
            assert y.to_list() == [[-1.0], [4.0, 6.0]]
    finally:
        tf.experimental.unregister_dispatch_for(leaky)
    flat = tf.ragged.map_flat_values(dispatched_leaky, ragged, 0.0)
    assert flat.to_list() == [[-1.0], [4.0, 6.0]]


def test_sparse_tensors_by_the_api_and_by_their_values() -> None:
    sparse = tf.sparse.from_dense([[0.0, -2.0], [4.0, 0.0]])

    @tf.experimental.dispatch_for_api(dispatched_leaky, {"x": tf.SparseTensor})
    def leaky(x: Any, bias: Any, *, slope: Any = 0.5, name: Any = None) -> Any:
        return x.with_values(dispatched_leaky(x.values, bias, slope=slope, name=name))

    try:
        for y in both_ways(lambda x: dispatched_leaky(x, 0.0), sparse):
            np.testing.assert_array_equal(tf.sparse.to_dense(y), [[0.0, -1.0], [4.0, 0.0]])
    finally:
        tf.experimental.unregister_dispatch_for(leaky)
    flat = tf.sparse.map_values(dispatched_leaky, sparse, 0.0)
    np.testing.assert_array_equal(tf.sparse.to_dense(flat), [[0.0, -1.0], [4.0, 0.0]])


def test_a_global_dispatcher_is_asked() -> None:
    class Symbol:
        """As Keras 2 has its symbolic tensors."""

    class Symbols(dispatch.GlobalOpDispatcher):
        def handle(self, op: Any, args: Any, kwargs: Any) -> Any:
            if any(isinstance(one, Symbol) for one in (*args, *kwargs.values())):
                return op, kwargs["slope"]
            return self.NOT_SUPPORTED

    dispatcher = Symbols()
    dispatcher.register()
    try:
        assert dispatched_leaky(Symbol(), 1.0, slope=0.125) == (dispatched_leaky, 0.125)
    finally:
        dispatch._GLOBAL_DISPATCHERS.remove(dispatcher)


def test_a_function_of_other_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="does not match API's signature"):
        tf.experimental.dispatch_for_api(dispatched_leaky, {"x": Masked})(lambda x: x)
