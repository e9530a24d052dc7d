"""Constants of several values: written out element by element when the kernel starts."""

from __future__ import annotations

from composite.compiler.tvm.ir.graph import Constant, compute_dtype, is_table
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.base import Context


class ConstantTable:
    """Store each value of a small constant; larger ones are not covered by the op table."""

    name = "constant"

    def fits(self, stage: Stage, context: Context) -> bool:  # noqa: ARG002
        """Take stages that store one constant of several values."""
        return is_table(stage.stores[0])

    def emit(self, stage: Stage, context: Context) -> None:
        """Write one store an element."""
        (tensor,) = stage.stores
        if not isinstance(tensor.node, Constant):
            raise TypeError("a constant stage stores a constant")
        access = context.access()
        for place, value in enumerate(tensor.node.value.reshape(-1)):
            element = access.number(value, compute_dtype(tensor.dtype))
            context.store_flat(tensor, place, element)
