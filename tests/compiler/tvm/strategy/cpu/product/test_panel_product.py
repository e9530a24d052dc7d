"""What is asked for while panels are multiplied, and that the products are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.target import Target
from tests.compiler.tvm.conftest import library_of

LEVEL = Target.of("x86-64-v3", 1)


@pytest.mark.parametrize(
    ("rows", "columns", "asks"),
    [(1000, 24, True), (100, 24, False), (1000, 400, False)],
    ids=["many rows", "few rows", "a factor that does not stay near"],
)
def test_rows_of_a_large_matrix_are_asked_for(rows: int, columns: int, asks: bool) -> None:
    """The prefetches of a tile are of its rows; those of a panel are as many as its vectors."""
    shapes = [(rows, 144), (144, columns)]
    library = library_of(tf.matmul, [tf.TensorSpec(shape) for shape in shapes])
    loops = backend.write(library, shapes, target=LEVEL, constants=(1,)).module.functions["kernel"]
    asked = [line for line in str(loops).splitlines() if "prefetch" in line]
    assert any("in0_flat" in line for line in asked) == asks


def test_a_product_that_asks_for_rows_is_right(compiler: Any) -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=s).astype(np.float32) for s in ((1003, 144), (144, 24))]
    compiler.compare(tf.matmul, *arrays, rtol=2e-5, atol=1e-4, constants=[1], target=LEVEL)
