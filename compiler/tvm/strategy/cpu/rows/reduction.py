"""Reductions over any dimensions, with the element-wise work before and after in the same loops.

If the last dimension stays, lanes run along it, each with a sum of its own. Otherwise lanes run
along the last dimension and are added up at the end. 16-bit floats are summed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.codegen.block import Buffer, const, index, minimum, quotient, remainder
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import element
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import chain_cost
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import tasks

_COLUMNS = 8
"""Vectors of columns that are summed together, to use whole cache lines of each row."""


class Reduction:
    """Any stage whose anchor is a reduction; "sum" stands for any of them here."""

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
        self._operand = node.operand
        self._axes = node.axes
        self._combine = node.combine.apply
        self._identity = node.combine.identity(compute_dtype(anchor.dtype))
        self._context = context
        self._dtype = compute_dtype(anchor.dtype)
        self._lanes = context.lanes(anchor.dtype)

    def write(self) -> None:
        """Write the loops."""
        context = self._context
        shape = self._stage.shape
        work = elements(self._operand.shape, context)
        cycles = quotient(work * chain_cost(self._stage, context), self._lanes)
        if self._operand.rank - 1 in self._axes:
            tasks(context, elements(shape, context), cycles, self._row_of_sums)
            return
        inner = context.size(shape[-1])
        width = self._lanes * _COLUMNS
        if isinstance(inner, int) and inner < self._lanes:
            tasks(context, elements(shape, context), cycles, self._single)
            return
        blocks = quotient(inner + (width - 1), width)
        outer = elements(shape[:-1], context)

        def body(task: Expr) -> None:
            row = context.block.bind(quotient(task, blocks), "row")
            self._columns(row, context.block.bind(remainder(task, blocks) * width, "at"), inner)

        tasks(context, outer * blocks, cycles, body)

    def _kept(self, flat: Expr | int) -> list[Index]:
        return unflatten(self._context, flat, self._stage.shape) if self._stage.shape else []

    def _source(self, kept: Sequence[Index], summed: Sequence[Index]) -> list[Index]:
        """Return the operand's indices from those kept and those summed over."""
        ours, theirs = iter(kept), iter(summed)
        return [next(theirs if i in self._axes else ours) for i in range(self._operand.rank)]

    def _sum_loops(self, stack: ExitStack, axes: Sequence[int]) -> list[Index]:
        return [
            stack.enter_context(
                self._context.block.loop(self._context.size(self._operand.shape[a]), "k")
            )
            for a in axes
        ]

    def _accumulate(self, total: Buffer, slot: int, at: list[Index]) -> None:
        block = self._context.block
        value = self._context.access().read(self._operand, at)
        lanes = self._lanes if any(isinstance(i, Lane) for i in at) else 1
        if lanes > 1 and str(element(value)) == str(value.ty.dtype):
            value = tirx.Broadcast(value, lanes)
        so_far = block.let(tirx.BufferLoad(total, [index(slot)]))
        block.store(total, slot, self._combine(block, so_far, block.let(value)))

    def _write_epilogue(self, kept: list[Index], total: Expr) -> None:
        """Store what is made of the sum."""
        access = self._context.access()
        access.give(self._anchor, lambda _: total)
        for tensor in self._stage.stores:
            self._context.store(tensor, kept, access.compute(tensor, kept))

    def _single(self, flat: Expr) -> None:
        """Sum one element with scalars."""
        block = self._context.block
        kept = self._kept(flat)
        total = block.registers(1, self._dtype)
        block.store(total, 0, const(self._identity, self._dtype))
        with ExitStack() as stack:
            summed = self._sum_loops(stack, self._axes)
            self._accumulate(total, 0, self._source(kept, summed))
        self._write_epilogue(kept, block.let(tirx.BufferLoad(total, [index(0)])))

    def _row_of_sums(self, flat: Expr) -> None:
        """Sum one element with lanes along the last dimension, then over the lanes."""
        block, lanes = self._context.block, self._lanes
        kept = self._kept(flat)
        vector = f"{self._dtype}x{lanes}"
        partial = block.registers(1, vector)
        total = block.registers(1, self._dtype)
        block.store(partial, 0, const(self._identity, vector))
        block.store(total, 0, const(self._identity, self._dtype))
        inner = self._context.size(self._operand.shape[-1])
        whole = quotient(inner, lanes)
        with ExitStack() as stack:
            outer = self._sum_loops(stack, self._axes[:-1])
            with block.loop(whole, "kv") as v:
                lane = Lane(block.bind(v * lanes), lanes)
                self._accumulate(partial, 0, self._source(kept, [*outer, lane]))
            rest = remainder(inner, lanes)
            with block.loop(rest, "ke") as e:
                self._accumulate(total, 0, self._source(kept, [*outer, whole * lanes + e]))
        result = block.let(tirx.BufferLoad(total, [index(0)]))
        parts = block.let(tirx.BufferLoad(partial, [index(0)]))
        for lane_index in range(lanes):
            part = block.let(tirx.Shuffle([parts], [lane_index]))
            result = block.let(self._combine(block, result, part))
        self._write_epilogue(kept, result)

    def _columns(self, row: Expr, at: Expr, inner: Expr | int) -> None:
        """Sum a block of neighbouring columns; the last vectors overlap their neighbours."""
        block, lanes = self._context.block, self._lanes
        kept_outer = unflatten(self._context, row, self._stage.shape[:-1] or (1,))
        kept_outer = kept_outer if len(self._stage.shape) > 1 else []
        is_long = inner >= lanes if isinstance(inner, int) else index(inner) >= lanes
        with block.when(is_long):
            total = block.registers(_COLUMNS, f"{self._dtype}x{lanes}")
            starts = [
                block.bind(index(minimum(at + j * lanes, inner - lanes)), "c")
                for j in range(_COLUMNS)
            ]
            for j in range(_COLUMNS):
                block.store(total, j, const(self._identity, f"{self._dtype}x{lanes}"))
            with ExitStack() as stack:
                summed = self._sum_loops(stack, self._axes)
                for j, start in enumerate(starts):
                    source = self._source([*kept_outer, Lane(start, lanes)], summed)
                    self._accumulate(total, j, source)
            for j, start in enumerate(starts):
                value = block.let(tirx.BufferLoad(total, [index(j)]))
                self._write_epilogue([*kept_outer, Lane(start, lanes)], value)
        if not isinstance(is_long, bool):
            with block.otherwise(), block.loop(inner, "column") as column:
                self._single(block.bind(row * inner + column))
