"""The test devices, for files that run in a process which may have them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tensorflow as tf

from tests.gpu.devices import IS_REAL, Devices, RealDevices, build


@pytest.fixture(scope="session")
def devices() -> Devices:
    """Two GPUs, from now on in this whole process; or those that TensorFlow has."""
    return RealDevices() if IS_REAL else Devices(build())


@pytest.fixture
def float32_is_not_rounded() -> Iterator[None]:
    """Products of float32 have all bits: only of these does a block hold a loop's weights."""
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    yield
    tf.config.experimental.enable_tensor_float_32_execution(before)
