"""Kernels that apply one function, for each level of CPUs that this machine has."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from composite.compiler import tvm as backend
from composite.compiler.tvm.build import Written, make_module
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Parameter, Tensor
from composite.compiler.tvm.machine import BFLOAT16
from composite.compiler.tvm.plan.plan import make_plan
from tests.compiler.tvm.host import Loaded


class Applied(Protocol):
    """What is applied to the elements of so many tensors."""

    @property
    def arity(self) -> int:
        """How many."""

    def tensor(self, *operands: Tensor) -> Tensor:
        """Return the tensor of results."""


_NUMBER = itertools.count()
_LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", BFLOAT16)


def levels() -> list[str]:
    """The levels that this machine has, or is told to have at most."""
    host = backend.Target.host().isa
    return [level for level in _LEVELS if level <= host]


def kernel(function: Applied, dtype: str, count: int, level: str, folder: Path) -> Loaded:
    """The kernel that applies a function to so many elements."""
    operands = tuple(Tensor((count,), dtype, Parameter(i)) for i in range(function.arity))
    result = function.tensor(*operands)
    target = backend.Target.of(level, 1)
    plan = make_plan(Function(operands, (result,)))
    made = Written(plan, target, make_module(plan, target, "kernel")).generate("applied")
    path = folder / f"applied_{next(_NUMBER)}.so"
    backend.link(made, path, runtime=None)
    return Loaded(made, path, 1)


def by_code(
    function: Applied, dtype: str, count: int, levels: Iterable[str], folder: Path
) -> dict[str, Loaded]:
    """The kernels for some levels; those of the same machine code are one, for all their levels."""
    names: dict[bytes, list[str]] = {}
    made: dict[bytes, Loaded] = {}
    for level in levels:
        loaded = kernel(function, dtype, count, level, folder)
        (code,) = loaded.kernel.objects.values()
        names.setdefault(code, []).append(level)
        made.setdefault(code, loaded)
    return {", ".join(names[code]): loaded for code, loaded in made.items()}
