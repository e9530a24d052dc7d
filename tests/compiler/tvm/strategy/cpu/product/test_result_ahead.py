"""What is asked for of a result while its sums are made, and that the products are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.target import Target
from tests.compiler.tvm.conftest import library_of

LEVEL = Target.of("x86-64-v3", 2)
LARGE, SMALL = (600, 700), (60, 70)


def added(x: Any, w: Any, y: Any) -> Any:
    return tf.matmul(x, w) * 2.0 + y


def squared(x: Any, w: Any, y: Any) -> Any:
    del y
    return tf.square(tf.matmul(x, w))


def shapes(result: tuple[int, int], depth: int) -> list[tuple[int, ...]]:
    return [(result[0], depth), (depth, result[1]), result]


def asked(function: Callable[..., Any], result: tuple[int, int], depth: int = 96) -> set[str]:
    """The buffers that a kernel prefetches."""
    given = shapes(result, depth)
    library = library_of(function, [tf.TensorSpec(shape) for shape in given])
    loops = str(backend.write(library, given, target=LEVEL).module.functions["kernel"])
    lines = [line for line in loops.splitlines() if "prefetch" in line]
    return {name for name in ("in0", "in1", "in2", "out0") if any(f"{name}_" in x for x in lines)}


def test_what_is_read_beside_a_product_and_where_it_is_stored_are_asked_for() -> None:
    assert asked(added, LARGE) == {"in2", "out0"}


@pytest.mark.parametrize(
    ("function", "result"),
    [(added, SMALL), (squared, LARGE)],
    ids=["an L2 cache holds it", "nothing is read beside it"],
)
def test_nothing_is_asked_for(function: Callable[..., Any], result: tuple[int, int]) -> None:
    assert not asked(function, result)


@pytest.mark.parametrize("depth", [7, 96, 1100])
def test_a_product_that_asks_is_right(compiler: Any, depth: int) -> None:
    random = np.random.default_rng(depth)
    given = shapes((601, 701), depth)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in given]
    compiler.compare(added, *arrays, rtol=2e-5, atol=1e-3, target=LEVEL)
