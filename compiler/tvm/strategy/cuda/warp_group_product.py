"""Matrix products of 16-bit floats by four warps together (``wgmma``), on GPUs of level 9.0.

A block has a rectangle of the result, each four warps 64 rows of it. Pieces of both factors come
into shared memory while those before them are multiplied, which goes on by itself: the tensor cores
read shared memory, and the threads go on to the next copies.

Not here: factors that cannot be copied 16 bytes at a time, and steps of loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from composite.compiler.tvm.codegen.device_block import Grid, Place
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, Numbers
from composite.compiler.tvm.strategy.cuda.group_launch import (
    GroupLaunch,
    GroupProduct,
    GroupTile,
    Rectangles,
    rectangles,
)
from composite.compiler.tvm.strategy.cuda.group_products import begin_products, end_products
from composite.compiler.tvm.strategy.cuda.staged_factor import Team, factors_of
from composite.compiler.tvm.strategy.cuda.staged_pieces import Start
from composite.compiler.tvm.strategy.cuda.swizzled_factor import (
    DEPTH,
    GROUP_ROWS,
    PIECE,
    SwizzledFactor,
    is_swizzled,
)
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.target import CudaTarget
from composite.compiler.tvm.tir.block import Buffer, quotient, remainder


class WarpGroupProduct:
    """Any stage whose anchor is a product that four warps multiply together."""

    name = "warp_group_product"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take products of 16-bit floats where the GPU has the instructions."""
        own = group_product(stage, context)
        if own is None or own.numbers.bytes != 2:
            return None
        if not all(is_swizzled(factor, context) for factor in own.factors):
            return None
        return _Writer(own)


def group_product(stage: Stage, context: Context) -> GroupProduct | None:
    """Return a stage's product if the GPU has instructions for four warps together."""
    anchor, target = stage.anchor, context.target
    if not (isinstance(target, CudaTarget) and target.has_warp_groups):
        return None
    if anchor is None or not isinstance(anchor.node, MatMul):
        return None
    node = anchor.node
    numbers = Numbers.of(anchor, context, node.a, node.b)
    if numbers is None or device_block(context).threads is not None:
        return None
    return GroupProduct(stage, anchor, factors_of(node), numbers, context)


@dataclass(frozen=True)
class _Writer:
    own: GroupProduct

    def write(self) -> None:
        """Write a launch for each of the rectangles."""
        for given in rectangles(self.own, self._held):
            _Launch(self.own, given).write()

    def _held(self, tile: GroupTile) -> int:
        return (tile.rows + tile.columns) * PIECE * self.own.numbers.bytes


class _Launch(GroupLaunch):
    """Of the pieces one is multiplied, one was before, and the others are to come."""

    def __init__(self, own: GroupProduct, given: Rectangles) -> None:
        super().__init__(own, given)
        self._numbers = own.numbers
        self._given = own.factors

    def _open(self, grid: Grid, held: Fragments, pool: Buffer) -> None:  # noqa: ARG002
        team = Team(grid.thread, self.tile.threads)
        self._factors = [
            SwizzledFactor(factor, side, team, self.context)
            for factor, side in zip(self._given, self.tile[:2], strict=True)
        ]
        self._views = [one.view(pool) for one in self._factors]

    def _sums(self, held: Fragments, starts: Sequence[Start]) -> Buffer:
        block, ahead = self.block, self.stages - 2
        sums = held.sums(self.tile.columns // 8)
        with block.loop(ahead, "early") as number:
            self._begin(number, starts)
        with block.loop(self.pieces(PIECE), "piece") as piece:
            block.call(f"composite_wait_for_copies<{ahead - 1}>")
            block.call("composite_wgmma_publish")
            # All have what they waited for, and no product reads what the next copies replace: of
            # those before, only the last one's may still go on.
            block.barrier()
            self._multiply(held, self._slots(piece), sums)
            self._begin(block.bind(piece + ahead, "coming"), starts)
            block.call("composite_wgmma_wait<1>")
        block.call("composite_wait_for_copies<0>")
        end_products(block, sums)
        return sums

    def _slots(self, piece: Expr) -> list[Place]:
        """Return where a piece of each factor is; the first factor's pieces lie in front."""
        block, slot = self.block, self.block.bind(remainder(piece, self.stages), "slot")
        places = (0, self.stages * self._factors[0].elements)
        return [
            Place(view, block.bind(slot * one.elements + place, "at"))
            for one, view, place in zip(self._factors, self._views, places, strict=True)
        ]

    def _begin(self, piece: Expr, starts: Sequence[Start]) -> None:
        """Begin to copy a piece of each factor."""
        inner = self.block.bind(piece * PIECE, "inner")
        for one, slot, start in zip(self._factors, self._slots(piece), starts, strict=True):
            one.begin(slot, start, inner)
        self.block.call("composite_commit_copies")

    def _multiply(self, held: Fragments, slots: Sequence[Place], sums: Buffer) -> None:
        """Begin to add the products of a piece of each factor."""
        a, b = self._factors
        rows = quotient(held.warp, 4) * GROUP_ROWS
        function = f"{self._numbers.name}<{self.tile.columns}, {a.far}, {b.far}>"
        first, second = a.matrix(slots[0], rows), b.matrix(slots[1])
        steps = ((first + a.further(k), second + b.further(k)) for k in range(0, PIECE, DEPTH))
        begin_products(self.block, function, sums, steps)
