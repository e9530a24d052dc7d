"""Reductions over any dimensions, with the element-wise work behind them in the same launch.

If the last dimension stays, neighbouring threads have neighbouring results, and rows of threads
share the elements of each. Otherwise a block has a result to itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.device_block import WARP, Grid
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.group import Group, Total
from composite.compiler.tvm.strategy.cuda.vectors import device_block, threads_of_block
from composite.compiler.tvm.strategy.epilogue import write_epilogue
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.tir.block import index, minimum, quotient, remainder

_THREADS = 256


class Reduction:
    """Any stage whose anchor is a reduction."""

    name = "reduction"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take reductions."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Reduce):
            return None
        return _Writer(stage, anchor, anchor.node, context)


class _Writer:
    def __init__(self, stage: Stage, anchor: Tensor, node: Reduce, context: Context) -> None:
        self._stage = stage
        self._anchor = anchor
        self._node = node
        self._operand = node.operand
        self._context = context
        self._block = device_block(context)

    def write(self) -> None:
        """Write one launch."""
        threads = threads_of_block("reduction.threads", (128, 256, 512), _THREADS, self._context)
        across = self._operand.rank - 1 not in self._node.axes
        results = WARP if across else 1
        with self._block.launch(product(self._stage.shape), results, threads) as grid:
            if across:
                self._columns(grid, threads)
            else:
                self._single(grid, threads)

    def _total(self) -> Total:
        return Total(self._block, self._node.combine, compute_dtype(self._anchor.dtype))

    def _single(self, grid: Grid, threads: int) -> None:
        """Write the loop of a block over its results."""
        block = self._block
        group = Group(block, threads, grid.thread)
        with block.share_out(
            grid.block, elements(self._stage.shape, self._context), grid.blocks
        ) as result:
            kept = self._kept(result)
            total = self._total()
            self._add(total, kept, grid.thread, threads)
            whole = group.combine(total)
            with block.when(grid.thread < index(1)):
                write_epilogue(self._context, self._stage, kept, whole)
            group.part()

    def _columns(self, grid: Grid, threads: int) -> None:
        """Write the loop of a block over a warp's width of results."""
        block = self._block
        parts = threads // WARP
        lane = block.bind(remainder(grid.thread, WARP), "lane")
        part = block.bind(quotient(grid.thread, WARP), "part")
        size = elements(self._stage.shape, self._context)
        with block.share_out(grid.block, quotient(size + (WARP - 1), WARP), grid.blocks) as unit:
            own = block.bind(unit * WARP + lane, "own")
            kept = self._kept(block.bind(index(minimum(own, size - 1)), "result"))
            total = self._total()
            self._add(total, kept, part, parts)
            room = total.shared(threads)
            total.leave(room, grid.thread)
            block.barrier()
            with block.when(grid.thread < index(minimum(WARP, size - unit * WARP))):
                total.restart()
                with block.loop(parts, "part") as p:
                    total.add_left(room, p * WARP + lane)
                write_epilogue(self._context, self._stage, kept, total.value())
            block.barrier()

    def _kept(self, flat: Expr) -> list[Index]:
        return unflatten(self._context, flat, self._stage.shape) if self._stage.shape else []

    def _add(self, total: Total, kept: Sequence[Index], first: Expr, step: int) -> None:
        """Combine every ``step``-th of the elements of a result."""
        block = self._block
        shape = tuple(self._operand.shape[a] for a in self._node.axes)
        count = self._context.size(product(shape))
        with block.share_out(first, count, index(step)) as flat:
            ours, theirs = iter(kept), iter(unflatten(self._context, flat, shape))
            at = [
                next(theirs) if i in self._node.axes else next(ours)
                for i in range(self._operand.rank)
            ]
            total.add(self._context.access().read(self._operand, at))
