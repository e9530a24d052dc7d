"""The test devices, for files that run in a process which may have them."""

from __future__ import annotations

import pytest

from tests.gpu.devices import Devices, build


@pytest.fixture(scope="session")
def devices() -> Devices:
    """Two GPUs, from now on in this whole process."""
    return Devices(build())
