"""All kernels of this folder's tests, compiled together for the stand-in for a GPU."""

from __future__ import annotations

import pytest

from tests.compiler.tvm.strategy.cuda import test_elementwise, test_reduction, test_rows
from tests.gpu.shim.cases import Batch


@pytest.fixture(scope="session")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """The kernels of all cases."""
    cases = {**test_elementwise.CASES, **test_reduction.CASES, **test_rows.CASES}
    return Batch(cases, tmp_path_factory.mktemp("emulated"))
