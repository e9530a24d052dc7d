"""Products of few rows with a transposed matrix, in the order of tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend

INVARIANT = replace(backend.Target.host(), invariant=True)
RANDOM = np.random.default_rng(0)


def _numbers(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def product(x: Any, w: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w, transpose_b=True) + 0.5)


@pytest.mark.parametrize("rows", [1, 3, 5])
@pytest.mark.parametrize(("columns", "depth"), [(33, 40), (64, 512), (17, 1050), (16, 16)])
def test_products(compiler: Any, rows: int, columns: int, depth: int) -> None:
    arrays = _numbers(rows, depth), _numbers(columns, depth)
    loaded = compiler.compare(product, *arrays, target=INVARIANT, rtol=1e-4, atol=1e-4)
    assert loaded.kernel.strategy == "turned"


def test_a_batch_of_single_rows(compiler: Any) -> None:
    arrays = _numbers(6, 1, 24), _numbers(6, 40, 24)
    loaded = compiler.compare(product, *arrays, target=INVARIANT, rtol=1e-4, atol=1e-4)
    assert loaded.kernel.strategy == "turned"


@pytest.mark.parametrize(("rows", "columns", "depth"), [(40, 33, 64), (2, 3, 64), (2, 64, 3)])
def test_others_are_for_tiles(compiler: Any, rows: int, columns: int, depth: int) -> None:
    arrays = _numbers(rows, depth), _numbers(columns, depth)
    loaded = compiler.compare(product, *arrays, target=INVARIANT, rtol=1e-4, atol=1e-4)
    assert loaded.kernel.strategy == "gemm"


def test_fast_kernels_add_up_lanes(compiler: Any) -> None:
    loaded = compiler.compare(product, _numbers(1, 64), _numbers(33, 64), rtol=1e-4, atol=1e-4)
    assert loaded.kernel.strategy == "dots"
