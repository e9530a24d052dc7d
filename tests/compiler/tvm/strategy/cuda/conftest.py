"""All kernels of this folder's tests, compiled together for the stand-in for a GPU."""

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
from tests.gpu.shim.cases import Batch

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
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """The kernels of all cases."""
    return Batch(CASES, tmp_path_factory.mktemp("emulated"))
