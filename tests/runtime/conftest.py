"""Fixtures of the runtime's tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
import tensorflow as tf

from composite.compiler.tvm import table
from composite.compiler.tvm.ir.dtypes import DTYPES
from composite.jit import worker
from tests.runtime import kernel_support as k

_numbers = itertools.count()
_LOWERED_NOWHERE = ["NoOp"]  # what no region has


def _set_kernel_ops(ops: list[str], **dtypes: list[tf.DType]) -> None:
    k.request("composite_set_kernel_ops", k.node("", "", ops=ops, **dtypes))


@pytest.fixture(autouse=True, scope="module")
def no_compiler() -> Iterator[None]:
    """The runtime of a process that compiles nothing, whatever tests ran before in this one."""
    compiling = worker.running()
    worker.stop()
    _set_kernel_ops([])
    yield
    _set_kernel_ops(sorted(table.NAMES), dtypes=[tf.as_dtype(name) for name in DTYPES])
    if compiling:
        worker.start()


@pytest.fixture(scope="module")
def lowers_nothing(no_compiler: None) -> None:
    """A compiler that lowers none of the tests' ops: regions are formed, and nodes of none stay."""
    _set_kernel_ops(_LOWERED_NOWHERE)


@pytest.fixture
def unique() -> Callable[[str], str]:
    """`unique(stem)` is an op name that no other test of this process registers."""
    return lambda stem: f"{stem}{next(_numbers)}"


@pytest.fixture
def kernel_ops() -> None:
    """The ops of the test programs are ones that a kernel compiler knows."""
    _set_kernel_ops(["MatMul", "BiasAdd", "Relu", "Tanh", "AddV2", "Mul", "Reshape", "OneHot"])
