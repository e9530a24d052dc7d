"""Which products of a loop can be one part of its launch, with weights that blocks hold.

They have the same first factor, which changes, and weights that stay; of each other's results they
read the elements that they make. How they are written: :mod:`.held_product`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from composite.compiler.tvm.codegen.device_block import WARP
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, ceildiv
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.fragments import Numbers
from composite.compiler.tvm.strategy.loop_trips import LoopTrips, reads_in_place
from composite.compiler.tvm.target import CudaTarget

DTYPE = "float32"
ROWS = 32
"""Rows that a block computes at a time."""
OWN_ROWS = 4
"""Of these a lane's."""
PARTS = 4
"""Lanes that share a row: each has a quarter of a block's columns of each product."""

_BYTES = 4
_COLUMNS = (4, 8)
"""Columns of each product that a block may have."""
_FRAGMENT_COLUMNS = (8, 16, 4)
"""The same on tensor cores, where those of all products are a multiple of 8.

Of 8 each of 256 threads has an element; of 4 twice as many blocks read the whole state.
"""
_MOST_FRAGMENTS = 64
"""Registers of a thread for weights on tensor cores."""
_MOST_OWN = 8
"""Columns of a lane, of all products, for which the registers and the room for sums suffice."""
_MOST_UNITS = 128
"""Groups of columns that have a block each on most GPUs: a group without one is loaded anew."""


def products_together(stages: Sequence[Stage], trips: LoopTrips, context: Context) -> list[Stage]:
    """Return which of the first stages are products that can be one; none, if the first is none."""
    group: list[Stage] = []
    for stage in stages:
        if not _joins(stage, group, trips, context):
            break
        group.append(stage)
    return group


def most_held(context: Context) -> int:
    """Return the bytes of weights that a block may hold on each GPU that runs the code.

    Other parts of the launch have what is left: as much as a function may declare.
    """
    target = context.target
    is_large = isinstance(target, CudaTarget) and not target.is_portable
    return (176 if is_large and target.isa.startswith(("sm_90", "sm_100")) else 48) << 10


@dataclass(frozen=True)
class HeldGroup:
    """Products side by side, and how they are cut.

    Attributes:
        stages: Those whose anchors they are.
        products: The products.
        columns: Columns of each product that a block has at a time.
        threads: Threads of a block.
        depth: The inner dimension.
        width: Columns of each product.
        numbers: What tensor cores multiply; None if they do not, and the weights are in shared
            memory.
    """

    stages: tuple[Stage, ...]
    products: tuple[MatMul, ...]
    columns: int
    threads: int
    depth: int
    width: int
    numbers: Numbers | None = None

    @classmethod
    def of(
        cls, stages: Sequence[Stage], threads: int, room: int, context: Context
    ) -> HeldGroup | None:
        """Return the group, if its weights take no more than so many bytes, or registers."""
        products = [s.anchor.node for s in stages if s.anchor and isinstance(s.anchor.node, MatMul)]
        if not products or len(products) < len(stages):
            return None
        depth, width = products[0].a.shape[1], _width(products[0])
        if not isinstance(depth, int) or not isinstance(width, int):
            return None
        numbers = _numbers(stages[0], context)
        for columns in _COLUMNS if numbers is None else _FRAGMENT_COLUMNS:
            group = cls((*stages,), (*products,), columns, threads, depth, width, numbers)
            if group.units <= _MOST_UNITS and group._fits(room):
                return group
        return None

    def _fits(self, room: int) -> bool:
        if self.numbers is None:
            return self.own <= _MOST_OWN and self.bytes <= room
        return self.wide % 8 == 0 and self.fragments <= _MOST_FRAGMENTS

    @property
    def state(self) -> Tensor:
        """The factor that the products have in common."""
        return self.products[0].a

    @property
    def units(self) -> int:
        """How many groups of columns there are."""
        return ceildiv(self.width, self.columns)

    @property
    def own(self) -> int:
        """Columns of a lane, of all products."""
        return len(self.stages) * self.columns // PARTS

    @property
    def step(self) -> int:
        """Elements from a lane's weights to those of the next part: what is copied at a time."""
        return 1 << (self.own - 1).bit_length()

    @property
    def weights(self) -> int:
        """Elements of the weights that a block holds."""
        return self.depth * PARTS * self.step

    @property
    def bytes(self) -> int:
        """Bytes of shared memory that they take."""
        return self.weights * _BYTES if self.numbers is None else 0

    @property
    def wide(self) -> int:
        """Columns that a block has of all products."""
        return len(self.stages) * self.columns

    @property
    def steps(self) -> int:
        """How many times a warp multiplies along its part of the inner dimension."""
        if self.numbers is None:
            raise ValueError("no tensor core multiplies")
        return ceildiv(ceildiv(self.depth, self.numbers.depth), self.threads // WARP)

    @property
    def fragments(self) -> int:
        """Registers of a thread that hold its weights, in fragments of 8 columns."""
        return self.steps * self.wide // 8 * 2

    @property
    def row(self) -> int:
        """Elements from a row of sums to the next one: neighbours are in different banks."""
        return self.wide + PARTS

    @property
    def sums(self) -> int:
        """Elements of the sums that the warps of a block leave."""
        return self.threads // WARP * ROWS * self.row


def _joins(stage: Stage, group: Sequence[Stage], trips: LoopTrips, context: Context) -> bool:
    """Return whether a stage is such a product, of the state and the sizes of the others."""
    anchor = stage.anchor
    if anchor is None or not isinstance(anchor.node, MatMul) or anchor.rank != 2:
        return False
    node = anchor.node
    factors = (node.a, node.b)
    if any(t.dtype != anchor.dtype or t.rank != anchor.rank for t in factors):
        return False
    if node.transpose_a or trips.stays(node.a) or not trips.stays(node.b):
        return False
    numbers = _numbers(stage, context)
    is_held = anchor.dtype == DTYPE if numbers is None else numbers.bytes == 2
    if not is_held:
        return False
    if not group:
        return True
    made = {t for one in group for t in one.made}
    first = group[0].anchor
    return (
        first is not None
        and isinstance(first.node, MatMul)
        and first.node.a is node.a
        and first.shape == anchor.shape
        and not made & set(topological(factors))
        and reads_in_place(stage.stores, made)
    )


def _numbers(stage: Stage, context: Context) -> Numbers | None:
    """Return what tensor cores multiply of a product; None if they do not."""
    anchor = stage.anchor
    if anchor is None or not isinstance(anchor.node, MatMul):
        return None
    return Numbers.of(anchor, context, anchor.node.a, anchor.node.b)


def _width(node: MatMul) -> Dim:
    return node.b.shape[-2 if node.transpose_b else -1]
