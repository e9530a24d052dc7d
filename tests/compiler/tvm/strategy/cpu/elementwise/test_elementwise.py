"""Element-wise stages: shapes, broadcasting, symbols, tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from composite.compiler import tvm as backend
from composite.compiler.tvm.show import show
from composite.compiler.tvm.target import Target
from tests import draws
from tests.compiler.tvm.conftest import library_of

_CHECKS = draws.kernels(25)


def mixed(x: Any, y: Any) -> Any:
    """A chain with a comparison, two dtypes and two outputs."""
    z = x * 2.0 + y
    return tf.where(z > 0.5, z, tf.abs(y)), z > x


@given(st_numpy.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=12))
@_CHECKS
def test_any_broadcast(compiler: Any, shapes: Any) -> None:
    random = np.random.default_rng(0)
    x, y = (random.uniform(-1, 1, s).astype(np.float32) for s in shapes.input_shapes)
    compiler.compare(mixed, x, y, rtol=1e-6, atol=1e-6)


@given(rows=st.integers(0, 40), columns=st.sampled_from([0, 1, 5, 8, 13, 64, 100]))
@_CHECKS
def test_symbolic_dimensions(compiler: Any, rows: int, columns: int) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (rows, columns)).astype(np.float32)
    y = random.uniform(-1, 1, columns).astype(np.float32)
    loaded = compiler.compare(mixed, x, y, shapes=[("s0", "s1"), ("s1",)], rtol=1e-6, atol=1e-6)
    assert loaded.kernel.out_shapes == ["s0,s1", "s0,s1"]


@pytest.mark.parametrize(
    "shapes", [[(3000, 70), (70,)], [(70, 3000), (70, 1)], [(3, 200_000), (3, 1)]]
)
def test_large_work_is_shared_out(compiler: Any, shapes: Any) -> None:
    random = np.random.default_rng(0)
    x, y = (random.uniform(-1, 1, s).astype(np.float32) for s in shapes)
    for tasks in (1, 2, 7):
        loaded = compiler.compare(mixed, x, y, rtol=1e-6, atol=1e-6, tasks=tasks)
        assert loaded.launches == 1


def test_one_symbolic_kernel_is_serial_for_small_and_parallel_for_large(compiler: Any) -> None:
    small, large = np.ones((2, 9), np.float32), np.ones((5000, 9), np.float32)
    loaded = compiler.compile(lambda x: tf.tanh(x) * x, [small], [("s0", 9)])
    loaded([small], [small.shape], [small.dtype])
    assert loaded.launches == 0
    (result,) = loaded([large], [large.shape], [large.dtype])
    assert loaded.launches == 1
    np.testing.assert_allclose(result, np.tanh(1.0), rtol=1e-6)


def test_undecided_broadcast_is_not_covered(compiler: Any) -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(backend.NotCovered, match="whether sizes s0 and s1 broadcast"):
        compiler.compile(lambda x, y: x + y, [x, x], [("s0", 3), ("s1", 3)])


def test_diamonds_stay_small(compiler: Any) -> None:
    """Each value is computed once: 40 doublings would otherwise be 2^40 expressions."""

    def function(x: Any) -> Any:
        for _ in range(40):
            x = (x + x) * 0.5
        return x

    compiler.compare(function, np.arange(20, dtype=np.float32))


def test_views_between_chains(compiler: Any) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)

    def function(x: Any) -> Any:
        y = tf.transpose(x * 2.0) + 1.0
        return y, tf.reshape(y, [3, 8]) * 3.0

    compiler.compare(function, x)


def test_scalars(compiler: Any) -> None:
    compiler.compare(lambda x, y: x * y + 1.0, np.float32(3.0), np.float32(-2.0))


def boxes(a: Any, b: Any) -> Any:
    """Each column in its own way; one of them of both operands, one of a scalar."""
    y, x, h, w = tf.unstack(a, axis=-1)
    q = tf.minimum(y, x) * b
    return tf.stack([y - h / 2.0, x - w / 2.0, q + h, tf.zeros_like(w)], axis=-1), q > 0.0


@pytest.mark.parametrize("rows", [(0,), (1,), (5,), (16,), (37,), (3, 11), (2, 3, 40), (5000,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_columns_that_are_made_in_different_ways(compiler: Any, rows: Any, dtype: Any) -> None:
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, shape).astype(dtype) for shape in ((*rows, 4), rows))
    rtol = 2e-3 if dtype == np.float16 else 1e-6
    for tasks in (1, 3):
        compiler.compare(boxes, a, b, rtol=rtol, atol=rtol, tasks=tasks)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 16, 100])
def test_columns_of_unknown_rows(compiler: Any, rows: int) -> None:
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, s).astype(np.float32) for s in ((rows, 4), (rows,)))
    compiler.compare(boxes, a, b, shapes=[("s0", 4), ("s0",)], rtol=1e-6, atol=1e-6)


def test_a_vector_holds_a_column_of_many_rows() -> None:
    shapes = [[64, 4], [64]]
    library = library_of(boxes, [tf.TensorSpec(shape, tf.float32) for shape in shapes])
    lanes = Target.host().lanes
    tir = show(library, shapes, "tir", Target.host())
    assert f"float32x{lanes}" in tir
    assert "either" not in tir  # no element chooses what it is made of


def test_columns_are_not_written_over_an_input(compiler: Any) -> None:
    a, b = np.ones((64, 4), np.float32), np.ones(64, np.float32)
    assert not any(compiler.compile(boxes, [a, b]).kernel.forwards)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1), (1, 5), (5, 1), (0,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_an_output_that_is_made_of_another_one(compiler: Any, shape: Any, dtype: Any) -> None:
    """Their loops may write over the inputs, so that both are computed before one is stored."""

    def function(x: Any, y: Any) -> Any:
        z = x * y
        return z, -z, z + (-z) * x

    x, y = np.full(shape, 3, dtype), np.full(shape, 5, dtype)
    compiler.compare(function, x, y)
