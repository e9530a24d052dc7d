"""Matrix products of 16-bit floats by four warps together (``wgmma``), on GPUs of level 9.0.

A block has a rectangle of the result, each four warps 64 rows of it. Pieces of both factors come
into shared memory while those before them are multiplied, which goes on by itself: the tensor cores
read shared memory, and the threads go on to the next copies. The sums stay in registers, where they
lie as those of :mod:`.tensor_product`; what follows the product is done like there.

Not here: factors that cannot be copied 16 bytes at a time, and steps of loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.block import Buffer, index, quotient, remainder
from composite.compiler.tvm.codegen.device_block import WARP, Grid, Place
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.fragments import Fragments, Numbers
from composite.compiler.tvm.strategy.cuda.group_products import begin_products, end_products
from composite.compiler.tvm.strategy.cuda.staged_factor import Factor, Team
from composite.compiler.tvm.strategy.cuda.staged_sums import SumsEpilogue
from composite.compiler.tvm.strategy.cuda.swizzled_factor import (
    DEPTH,
    GROUP_ROWS,
    PIECE,
    SwizzledFactor,
    is_swizzled,
)
from composite.compiler.tvm.strategy.cuda.tiles import counts, default_tile
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.strategy.indexing import unflatten
from composite.compiler.tvm.target import CudaTarget

_GROUP = 4 * WARP
_STAGES = 4
"""Pieces that are in shared memory: the one that is multiplied, the one before, and two to come."""


class _Tile(NamedTuple):
    """The rectangle of a block."""

    rows: int
    columns: int

    @property
    def threads(self) -> int:
        return self.rows // GROUP_ROWS * _GROUP


_TILES = {f"{one.rows}x{one.columns}": one for one in (
    _Tile(128, 256), _Tile(128, 128), _Tile(128, 64), _Tile(64, 128), _Tile(64, 64)
)}  # fmt: skip


class WarpGroupProduct:
    """Any stage whose anchor is a product that four warps multiply together."""

    name = "warp_group_product"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take products of 16-bit floats where the GPU has the instructions."""
        anchor, target = stage.anchor, context.target
        if not (isinstance(target, CudaTarget) and target.has_warp_groups):
            return None
        if anchor is None or not isinstance(anchor.node, MatMul):
            return None
        node = anchor.node
        numbers = Numbers.of(anchor, context, node.a, node.b)
        if numbers is None or numbers.bytes != 2 or device_block(context).threads is not None:
            return None
        factors = Factor(node.a, not node.transpose_a), Factor(node.b, node.transpose_b)
        if not all(is_swizzled(factor, context) for factor in factors):
            return None
        return _Writer(stage, anchor, factors, numbers, context)


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    anchor: Tensor
    factors: tuple[Factor, Factor]
    numbers: Numbers
    context: Context

    def write(self) -> None:
        """Write one launch."""
        _Launch(self).write()


class _Launch:
    def __init__(self, own: _Writer) -> None:
        self._own = own
        self._context = context = own.context
        self._block = device_block(context)
        default = default_tile(own.anchor, _TILES)
        self._tile = tile = _TILES[context.choose("warps.tile", [*_TILES], default)]
        self._pieces = quotient(context.size(own.factors[0].depth) + (PIECE - 1), PIECE)
        self._epilogue = SumsEpilogue(own.stage, own.anchor, tile.columns, context)
        held = (tile.rows + tile.columns) * PIECE * own.numbers.bytes
        self._room = max(_STAGES * held, self._epilogue.bytes(tile.threads // WARP))

    def write(self) -> None:
        block, tile = self._block, self._tile
        units = counts(self._own.anchor, tile)
        work = product(units)
        with block.launch(work, 1, tile.threads) as grid:
            pool = block.pool(self._room)
            held = Fragments(block, self._own.numbers, grid.thread)
            factors = self._factors(grid)
            with block.share_out(grid.block, self._context.size(work), grid.blocks) as unit:
                *place, i, j = unflatten(self._context, unit, units)
                first = block.bind(index(i * tile.rows), "row")
                left = block.bind(index(j * tile.columns), "column")
                sums = self._sums(held, pool, factors, [(place, first), (place, left)])
                block.barrier()
                row = block.bind(first + held.warp * 16, "row")
                self._epilogue.write(held, pool, sums, [*place, row, left])
                block.barrier()

    def _factors(self, grid: Grid) -> list[SwizzledFactor]:
        team = Team(grid.thread, self._tile.threads)
        return [
            SwizzledFactor(factor, side, team, self._context)
            for factor, side in zip(self._own.factors, self._tile[:2], strict=True)
        ]

    def _sums(
        self,
        held: Fragments,
        pool: Buffer,
        factors: Sequence[SwizzledFactor],
        starts: Sequence[tuple[Sequence[Index], Expr]],
    ) -> Buffer:
        """Add up the products of all pieces; ``starts`` are those of the factors."""
        block, ahead = self._block, _STAGES - 2
        places = (0, _STAGES * factors[0].elements)  # the first factor's pieces lie in front
        views = [one.view(pool) for one in factors]
        sums = held.sums(self._tile.columns // 8)

        def slots(piece: Expr) -> list[Place]:
            slot = block.bind(remainder(piece, _STAGES), "slot")
            return [
                Place(view, block.bind(slot * one.elements + place, "at"))
                for one, view, place in zip(factors, views, places, strict=True)
            ]

        def begin(piece: Expr) -> None:
            inner = block.bind(piece * PIECE, "inner")
            for one, slot, start in zip(factors, slots(piece), starts, strict=True):
                one.begin(slot, start, inner)
            block.call("composite_commit_copies")

        with block.loop(ahead, "early") as number:
            begin(number)
        with block.loop(self._pieces, "piece") as piece:
            block.call(f"composite_wait_for_copies<{ahead - 1}>")
            block.call("composite_wgmma_publish")
            # All have what they waited for, and no product reads what the next copies replace: of
            # those before, only the last one's may still go on.
            block.barrier()
            self._multiply(held, factors, slots(piece), sums)
            begin(block.bind(piece + ahead, "coming"))
            block.call("composite_wgmma_wait<1>")
        block.call("composite_wait_for_copies<0>")
        end_products(block, sums)
        return sums

    def _multiply(
        self,
        held: Fragments,
        factors: Sequence[SwizzledFactor],
        slots: Sequence[Place],
        sums: Buffer,
    ) -> None:
        """Begin to add the products of a piece of each factor."""
        a, b = factors
        rows = quotient(held.warp, 4) * GROUP_ROWS
        function = f"{self._own.numbers.name}<{self._tile.columns}, {a.far}, {b.far}>"
        first, second = a.matrix(slots[0], rows), b.matrix(slots[1])
        steps = ((first + a.further(k), second + b.further(k)) for k in range(0, PIECE, DEPTH))
        begin_products(self._block, function, sums, steps)
