"""Fixtures of the runtime's tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.runtime import kernel_support as k

_numbers = itertools.count()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """`unique(stem)` is an op name that no other test of this process registers."""
    return lambda stem: f"{stem}{next(_numbers)}"


@pytest.fixture
def kernel_ops() -> None:
    """The ops of the test programs are ones that a kernel compiler knows."""
    ops = ["MatMul", "BiasAdd", "Relu", "Tanh", "AddV2", "Mul", "Reshape"]
    k.request("composite_set_kernel_ops", k.node("", "", ops=ops))
