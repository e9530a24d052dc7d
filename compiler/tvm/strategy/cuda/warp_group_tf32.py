"""Matrix products in TF32 by four warps together (``wgmma``), on GPUs of level 9.0.

The tensor cores read float32 from shared memory only where the inner dimension is the near one. So
one factor that lies so stays there, and the other one, of either layout, goes on to registers. If
the first factor is the one that stays, blocks have rectangles of the result's transpose.

While the products of a piece go on, the fragments of the next one are loaded, and the copies of
later ones. Factors in registers are rounded to TF32; of those in shared memory the tensor cores
read what TF32 has of their bits.

Not here: products neither of whose factors has the inner dimension near, factors that cannot be
copied 16 bytes at a time, and steps of loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from composite.compiler.tvm.codegen.device_block import Grid, Place
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.fragments import Fragments
from composite.compiler.tvm.strategy.cuda.group_launch import (
    GroupLaunch,
    GroupProduct,
    GroupTile,
    Rectangles,
    rectangles,
)
from composite.compiler.tvm.strategy.cuda.group_products import begin_products, end_products
from composite.compiler.tvm.strategy.cuda.staged_factor import (
    Corner,
    Factor,
    StagedFactor,
    Team,
    is_inner_near,
)
from composite.compiler.tvm.strategy.cuda.staged_pieces import Start
from composite.compiler.tvm.strategy.cuda.swizzled_factor import (
    WIDE_PIECE,
    SwizzledFactor,
    is_swizzled,
)
from composite.compiler.tvm.strategy.cuda.warp_group_product import group_product
from composite.compiler.tvm.tir.block import Buffer, index, remainder


class WarpGroupTf32:
    """Any stage whose anchor is a product in TF32 that four warps multiply together."""

    name = "warp_group_tf32"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take products one of whose factors tensor cores can read from shared memory."""
        own = group_product(stage, context)
        if own is None or own.numbers.bytes != 4:
            return None
        if not all(is_swizzled(factor, context) for factor in own.factors):
            return None
        for kept in (1, 0):  # the second factor first: the result is not turned then
            if is_inner_near(own.factors[kept], context):
                return _Writer(own, kept)
        return None


@dataclass(frozen=True)
class _Writer:
    own: GroupProduct
    kept: int

    def write(self) -> None:
        """Write a launch for each of the rectangles."""
        for given in rectangles(self.own, self._held, turned=self.kept == 0):
            _Launch(self, given).write()

    def _held(self, tile: GroupTile) -> int:
        stays = tile.second * WIDE_PIECE * self.own.numbers.bytes
        return self.staged(tile).bytes + stays

    def staged(self, tile: GroupTile) -> StagedFactor:
        """Return the factor that goes on to registers."""
        return StagedFactor(
            self.own.factors[1 - self.kept], tile.first, WIDE_PIECE, self.own.context
        )


class _Launch(GroupLaunch):
    """Of the pieces two are multiplied, and the others are to come."""

    def __init__(self, writer: _Writer, given: Rectangles) -> None:
        own = writer.own
        super().__init__(own, given)
        self._numbers = own.numbers
        self._kept = writer.kept
        self._factor: Factor = own.factors[writer.kept]
        self._staged = writer.staged(given.tile)

    def _open(self, grid: Grid, held: Fragments, pool: Buffer) -> None:
        self._team = Team(grid.thread, self.tile.threads)
        self._shared = SwizzledFactor(self._factor, self.tile.second, self._team, self.context)
        self._view = self._shared.view(pool)
        place = held.lane_place(self._staged, is_first=True)
        own = place + held.warp * (16 * self._staged.step[0])
        self._place = self.block.bind(own, "place")

    def _sums(self, held: Fragments, starts: Sequence[Start]) -> Buffer:
        block, ahead = self.block, self.stages - 1
        sums = held.sums(self.tile.second // 8)
        count = WIDE_PIECE // self._numbers.depth
        left = [held.registers(count, "left") for _ in range(2)]
        with block.loop(ahead, "early") as number:
            self._begin(number, starts)
        self._await(ahead - 1)
        self._load(held, index(0), left[0])
        # Two pieces at a time: registers of one are loaded while products read those of the other.
        # A piece that is not there is zeros.
        with block.loop(self.pieces(2 * WIDE_PIECE), "pair") as pair:
            for number in range(2):
                piece = block.bind(pair * 2 + number, "piece")
                now, coming = left[number], left[1 - number]
                self._multiply(piece, now, sums)
                block.call(f"composite_wgmma_release<1, {4 * count}>", block.address(coming, 0))
                # All have what they waited for, and the products that read what the next copies
                # replace have ended.
                self._await(ahead - 2)
                self._begin(block.bind(piece + ahead, "after"), starts)
                self._load(held, block.bind(piece + 1, "coming"), coming)
        block.call("composite_wait_for_copies<0>")
        end_products(block, sums)
        return sums

    def _await(self, groups: int) -> None:
        """Have all threads wait for copies; the last ``groups`` of them may still be under way."""
        block = self.block
        block.call(f"composite_wait_for_copies<{groups}>")
        block.call("composite_wgmma_publish")
        block.barrier()

    def _slot(self, piece: Expr) -> tuple[Place, Place]:
        """Return where a piece of the factor that stays is, and of the other one."""
        block, stays = self.block, self._shared.elements
        slot = block.bind(remainder(piece, self.stages), "slot")
        other = block.bind(slot * self._staged.elements + self.stages * stays, "at")
        return Place(self._view, block.bind(slot * stays, "at")), Place(self._view, other)

    def _begin(self, piece: Expr, starts: Sequence[Start]) -> None:
        """Begin to copy a piece of each factor."""
        inner = self.block.bind(piece * WIDE_PIECE, "inner")
        stays, other = self._slot(piece)
        self._shared.begin(stays, starts[self._kept], inner)
        self._staged.bring(self._team, other, Corner(*starts[1 - self._kept], inner))
        self.block.call("composite_commit_copies")

    def _load(self, held: Fragments, piece: Expr, to: Buffer) -> None:
        """Load a warp's fragments of a piece."""
        at = self.block.bind(self._slot(piece)[1].at + self._place, "at")
        for k in range(WIDE_PIECE // self._numbers.depth):
            place = at + k * self._numbers.depth * self._staged.step[1]
            held.load(self._staged, Place(self._view, place), Place(to, k), is_first=True)

    def _multiply(self, piece: Expr, left: Buffer, sums: Buffer) -> None:
        """Begin to add the products of a piece."""
        block, depth = self.block, self._numbers.depth
        matrix = self._shared.matrix(self._slot(piece)[0])
        steps = (
            (block.address(left, 4 * k), matrix + self._shared.further(k * depth))
            for k in range(WIDE_PIECE // depth)
        )
        begin_products(block, f"held_tf32<{self.tile.second}>", sums, steps)
