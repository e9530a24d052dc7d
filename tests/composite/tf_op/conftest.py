"""Libraries as modules, loaded once."""

from __future__ import annotations

import pytest

from composite import tf_op
from tests.composite.tf_op import libraries


@pytest.fixture(scope="session")
def kernels() -> tf_op.Module:
    return tf_op.Module(libraries.kernels())


@pytest.fixture(scope="session")
def program() -> tf_op.Module:
    return tf_op.Module(libraries.program())


@pytest.fixture(scope="session")
def foreign() -> tf_op.Module:
    return tf_op.Module(libraries.foreign())
