"""A dense op, with and without a kernel, and what was counted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")


@pytest.fixture
def dense(unique: Callable[[str], str]) -> tuple[str, str]:
    op = unique("RtDense")
    return op, k.register(k.dense(op))


@pytest.fixture
def fused(dense: tuple[str, str], tmp_path: Path) -> str:
    """A dense op with a kernel for all shapes, parallel over rows."""
    op, digest = dense
    k.install_dense(tmp_path, op, digest, "-DPARALLEL", "-O2")
    return op


class Counted:
    """The growth of the counters since it was made."""

    def __init__(self) -> None:
        self._before = k.stats()

    def __getitem__(self, name: str) -> int:
        return int(k.stats()[name]) - int(self._before[name])


@pytest.fixture
def counted() -> Counted:
    return Counted()
