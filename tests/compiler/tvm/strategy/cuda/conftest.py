"""The kernels of this folder's tests; those of a file are compiled together for the stand-in."""

from __future__ import annotations

import pytest

from tests.compiler.tvm.strategy.cuda import (
    test_attention,
    test_elementwise,
    test_product,
    test_recurrence,
    test_reduction,
    test_rows,
    test_tensor_product,
    test_tiled_product,
    test_warp_group_attention,
    test_warp_group_product,
    test_warp_group_tf32,
)
from tests.gpu.shim.cases import Batch, Kernels

_FILES = (
    test_attention,
    test_elementwise,
    test_product,
    test_recurrence,
    test_reduction,
    test_rows,
    test_tensor_product,
    test_tiled_product,
    test_warp_group_attention,
    test_warp_group_product,
    test_warp_group_tf32,
)
CASES = {name: case for file in _FILES for name, case in file.CASES.items()}


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    """The kernels of all files' cases."""
    return Kernels(CASES)


@pytest.fixture(scope="module")
def batch(
    request: pytest.FixtureRequest, kernels: Kernels, tmp_path_factory: pytest.TempPathFactory
) -> Batch:
    """The cases of a file."""
    return Batch(request.module.CASES, kernels, tmp_path_factory.mktemp("emulated"))
