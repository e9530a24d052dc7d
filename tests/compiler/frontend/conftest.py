"""Bodies are translated here and run; kernels of them are tests/compiler/tvm's."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _expansions_only(expansions_only: None) -> None:
    """Ask for no kernels in any file."""
