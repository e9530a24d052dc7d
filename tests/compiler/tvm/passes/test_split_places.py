"""Sums of what was put together place by place: one for each place, of tensors without places."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.merge_equal import merge_equal
from composite.compiler.tvm.passes.split_places import split_places
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of


def overlaps(x: Any, y: Any) -> tuple[Any, Any]:
    """Both gradients of the sum of the areas that boxes have in common, without the masks."""
    sides = tf.nn.relu(tf.minimum(x[:, None, 2:], y[:, 2:]) - tf.maximum(x[:, None, :2], y[:, :2]))
    height, width = tf.unstack(sides, axis=-1)
    both = tf.stack([tf.exp(-height) * width, height], -1) * tf.cast(sides > 0.1, x.dtype)
    return tf.reduce_sum(both, 1), tf.reduce_sum(both * 2.0, 0)


def split(function: Any, *shapes: tuple[int | str, ...]) -> list[Tensor]:
    specs = [tf.TensorSpec([d if isinstance(d, int) else None for d in s]) for s in shapes]
    read = read_function(library_of(function, specs), shapes)
    return topological(merge_equal(split_places(read)).outputs)


def sums(tensors: list[Tensor]) -> list[tuple[Any, ...]]:
    return [t.node.operand.shape for t in tensors if isinstance(t.node, Reduce)]


@pytest.mark.parametrize("n", [30, "s0"])
def test_each_place_has_a_sum_of_its_own(n: Any) -> None:
    tensors = split(overlaps, (n, 4), (20, 4))
    size = n if isinstance(n, int) else dims.symbol(n)
    assert sums(tensors) == [(size, 20)] * 4
    # What both sums need of a place is one tensor, whoever reads it.
    exponentials = [t for t in tensors if getattr(t.node, "op", "") == "Exp"]
    assert [t.shape for t in exponentials] == [(size, 20)]


def test_chains_may_be_longer_than_pythons_stack() -> None:
    def function(x: Any) -> Any:
        left, right = tf.unstack(x, axis=-1)
        both = tf.stack([right, left], -1)
        for _ in range(1500):
            both = both * 0.5
        return tf.reduce_sum(both, 0)

    assert sums(split(function, (9, 20, 2))) == [(9, 20)] * 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.reduce_sum(x * 2.0, 0),  # nothing was put together
        lambda x: tf.reduce_sum(tf.stack(tf.unstack(x, axis=-1), -1), -1),  # summed along it
        lambda x: tf.reduce_sum(tf.concat([x[:, :, 2:], x[:, :, :2]], -1), 0),  # of halves
        lambda x: tf.stack([x[..., 0], x[..., 1]], -1) + 1.0,  # not summed
    ],
)
def test_others_stay(function: Any) -> None:
    specs = [tf.TensorSpec([5, 6, 4])]
    read = read_function(library_of(function, specs), [(5, 6, 4)])
    assert split_places(read) is read


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_the_values_are_tensorflows(compiler: Any, dtype: Any) -> None:
    random = np.random.default_rng(0)
    x, y = (random.uniform(-2, 2, (n, 4)).astype(dtype) for n in (19, 35))
    tolerance = 1e-5 if dtype == np.float32 else 5e-2
    loaded = compiler.compare(overlaps, x, y, rtol=tolerance, atol=tolerance)
    # One loop over the rows, and one for all that is summed across them.
    assert loaded.kernel.strategy.split("+").count("reduction") == 1


def test_a_place_of_a_sum_over_the_last_dimension_is_no_place_of_what_it_sums(
    compiler: Any,
) -> None:
    def function(x: Any) -> Any:
        most = tf.reduce_max(x, -1)
        left, right = tf.unstack(most, axis=-1)
        return tf.reduce_sum(tf.stack([right, left], -1) * most, 0)

    assert sorted(sums(split(function, (5, 3, 2, 7)))) == [(5, 3), (5, 3), (5, 3, 2, 7)]
    compiler.compare(function, np.random.default_rng(0).standard_normal((5, 3, 2, 7)), rtol=1e-12)
