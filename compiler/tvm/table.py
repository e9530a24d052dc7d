"""The TF ops that a kernel can be made of, with the function that lowers each.

Importable without TVM, because the runtime is told the names when it starts. Which module of
:mod:`.lower` has an op's function, its row in `op_traits` says.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import get_args

from composite.compiler import op_traits
from composite.compiler.op_traits import Family, Runs
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.nodes.node import OpNode

Lowering = Callable[[OpNode, list[Tensor]], list[Tensor]]

FAMILIES: dict[str, tuple[str, ...]] = {
    family: tuple(row.name for row in op_traits.TABLE.values() if row.family == family)
    for family in get_args(Family)
}

# TF ops that call a function; they vanish when the function is read.
CALLS: frozenset[str] = op_traits.that_run(Runs.CALL)
# TF's loops, which become loops within a kernel where the trips can be counted beforehand.
LOOPS: frozenset[str] = op_traits.that_run(Runs.LOOP)
# TF's branches, of which kernels compute all and select one.
BRANCHES: frozenset[str] = op_traits.that_run(Runs.BRANCH)

NAMES: frozenset[str] = (
    frozenset(op for ops in FAMILIES.values() for op in ops) | CALLS | LOOPS | BRANCHES
)
"""Every TF op that a kernel may hold (some only for certain dtypes, attributes or shapes)."""


def lowering(op: str) -> Lowering | None:
    """Return the function that lowers the op, or None if it is not in the table."""
    family = op_traits.of(op).family
    if family is None:
        return None
    return import_module(f".lower.{family}", __package__).LOWERINGS[op]
