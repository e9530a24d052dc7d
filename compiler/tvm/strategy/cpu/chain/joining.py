"""Which stages of a plan are written as a chain: those that cost less on blocks of rows.

A chain saves that what its stages hand on is stored whole and fetched again, and a launch of
threads a stage. It costs that each task packs the second factors of products for itself, and that
columns cannot be shared out. So the factors must be small, and the blocks enough for all cores.
"""

from __future__ import annotations

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Constant
from composite.compiler.tvm.plan.row_chains import row_chains
from composite.compiler.tvm.plan.row_stages import rows_of
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.product.blocking import BLOCK_ROWS, guess
from composite.compiler.tvm.strategy.cpu.product.product import float_product

_BLOCKS_PER_CORE = 2


def joined_stages(context: Context) -> list[Stage]:
    """Return the stages that are written for the plan of a context, in order."""
    target = context.target

    def may_join(stage: Stage) -> bool:
        if 0 in stage.shape or any(isinstance(t.node, Constant) for t in stage.stores):
            return False
        if stage.anchor is None or not isinstance(stage.anchor.node, MatMul):
            return stage.anchor is None or rows_of(stage) is not None
        found = float_product(stage)
        if found is None:
            return False
        factor = guess(found.depth) * guess(found.columns) * ITEM_SIZE[found.dtype]
        return factor <= target.cache_bytes

    def pays(stage: Stage) -> bool:
        *batch, rows = stage.shape
        if not (batch or isinstance(rows, int)):
            return False  # a call may have a single block, which several threads cannot share
        blocks = guess(product(batch)) * guess(rows) // (BLOCK_ROWS // 2)
        return blocks >= _BLOCKS_PER_CORE * target.cores

    return row_chains(context.plan, may_join, pays)


def element_bytes(stage: Stage) -> int:
    """Return about how many bytes a row of what the parts of a chain store takes."""
    cut = len(stage.shape)
    return sum(
        guess(product(t.shape[cut:])) * ITEM_SIZE[compute_dtype(t.dtype)]
        for part in stage.parts
        for t in part.stores
    )
