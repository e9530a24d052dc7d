"""Constants of several values: one thread stores them, before what reads them is launched."""

from __future__ import annotations

from dataclasses import dataclass

from composite.compiler.tvm.codegen.device_block import WARP
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.graph import is_table
from composite.compiler.tvm.ir.tensor import Constant, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.tir.block import index


class ConstantTable:
    """Store each value of a small constant; larger ones are not covered by the op table."""

    name = "constant"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take stages that store one constant of several values."""
        tensor = stage.stores[0] if stage.stores else None
        if tensor is None or not isinstance(tensor.node, Constant) or not is_table(tensor):
            return None
        return _Writer(tensor, tensor.node, context)


@dataclass(frozen=True)
class _Writer:
    tensor: Tensor
    node: Constant
    context: Context

    def write(self) -> None:
        """Write one launch."""
        block = device_block(self.context)
        with block.launch(1, 1, WARP) as grid, block.when(grid.thread < index(1)):
            access = self.context.access()
            for place, value in enumerate(self.node.value.reshape(-1)):
                element = access.number(value, compute_dtype(self.tensor.dtype))
                self.context.store_flat(self.tensor, place, element)
