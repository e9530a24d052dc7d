"""Which stages of a plan are written as a chain: those that cost less on blocks of rows.

A chain saves that what its stages hand on is stored whole and fetched again. That is worth
something where the caches do not hold it, and where little is multiplied for each element of it. It
costs that each task packs the second factors of products for itself, and that columns cannot be
shared out. So these factors must be small, and the blocks enough for all cores.
"""

from __future__ import annotations

from collections.abc import Iterable

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Constant, Tensor
from composite.compiler.tvm.plan.row_chains import row_chains
from composite.compiler.tvm.plan.row_stages import rows_of
from composite.compiler.tvm.plan.siblings import join_siblings
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.product.blocking import BLOCK_ROWS, guess
from composite.compiler.tvm.strategy.cpu.product.product import float_product

_BLOCKS_PER_CORE = 2

_MOST_PRODUCTS = 128
"""Multiplications for an element that is handed on, above which it costs nothing beside them."""


def joined_stages(context: Context) -> list[Stage]:
    """Return the stages that are written for the plan of a context, in order."""
    chained = row_chains(context.plan, lambda s: may_join(s, context), lambda s: pays(s, context))
    return join_siblings(chained, context.plan.stored)


def may_join(stage: Stage, context: Context) -> bool:
    """Return whether a stage may be in a chain."""
    if 0 in stage.shape or any(isinstance(t.node, Constant) for t in stage.stores):
        return False
    if stage.anchor is None or not isinstance(stage.anchor.node, MatMul):
        return stage.anchor is None or rows_of(stage) is not None
    found = float_product(stage)
    if found is None:
        return False
    if not (isinstance(found.depth, int) and isinstance(found.columns, int)):
        return False  # the second factor would be packed for each block
    return found.depth * found.columns * ITEM_SIZE[found.dtype] <= context.machine.held


def pays(chain: Stage, context: Context) -> bool:
    """Return whether a chain is better than its parts; a batch that the call decides is guessed."""
    *batch, rows = chain.shape
    if not isinstance(rows, int):
        return False  # a call may have few of them, for which a stage alone has loops of its own
    count = guess(product(batch)) * rows
    if count // (BLOCK_ROWS // 2) < _BLOCKS_PER_CORE * context.target.cores:
        return False
    saved = row_bytes(chain, [t for t in handed_on(chain) if t not in chain.stores])
    if saved * count < context.machine.l2.size * context.target.cores:
        return False
    return _products(chain) <= _MOST_PRODUCTS * saved // 4


def handed_on(chain: Stage) -> list[Tensor]:
    """Return what the parts of a chain store for each other."""
    return [t for part in chain.parts[:-1] for t in part.stores]


def row_bytes(chain: Stage, tensors: Iterable[Tensor]) -> int:
    """Return about how many bytes a row of some tensors of a chain takes."""
    cut = len(chain.shape)
    sizes = (ITEM_SIZE[compute_dtype(t.dtype)] * guess(product(t.shape[cut:])) for t in tensors)
    return sum(sizes)


def _products(chain: Stage) -> int:
    """Return about how many multiplications the products of a chain have for each row."""
    found = (float_product(part) for part in chain.parts)
    return sum(guess(one.depth) * guess(one.columns) for one in found if one is not None)
