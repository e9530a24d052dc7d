"""The register tile of a matrix product: its shape, and its innermost loop.

``rows x vectors`` accumulators stay in registers while k runs; each step loads the vectors once,
broadcasts one element a row, and multiplies all with all. 6 x 2 vectors fill the 16 registers of
AVX2 (12 sums, 2 vectors, 1 broadcast), 12 x 2 the 32 of AVX-512; more would spill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.ir.prim import expr as prim

from composite.compiler.tvm.ir.dims import Dim, ceildiv
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.machine import Machine
from composite.compiler.tvm.math.integer_dots import Dot
from composite.compiler.tvm.target import Target
from composite.compiler.tvm.tir.block import (
    Block,
    Buffer,
    ceil_quotient,
    const,
    index,
    quotient,
)

UNROLL = 4
"""Steps of k that are written behind each other at most, and what pieces are multiples of."""

_LEAST_PRODUCTS = 12
"""Products of vectors in a trip of the loop over k: with fewer, its own instructions count. With
more they do not, and what is written more often takes longer to compile."""

_LEAST_SUMS = 10
"""Sums that two multipliers need, so that none waits for another: 8, and two for what is uneven."""

PIECE = 512
"""Steps of k that are added up by themselves at most: a longer sum loses accuracy."""


@dataclass(frozen=True)
class Tile:
    """``rows`` broadcast elements by ``vectors`` vectors."""

    rows: int
    vectors: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.vectors}"

    def cycles(self, machine: Machine, *, groups: bool = False, lost: float = 0.0) -> float:
        """Return the cycles of a step of k, of elements or of groups of them.

        ``lost`` are those in which a sum could be added to, but its instruction waits for others.
        """
        sums = self.rows * self.vectors
        latency = machine.group_latency if groups else machine.latency
        loads = (self.rows + self.vectors) / machine.loads
        return max(sums / machine.multiply_adds, loads, latency + lost)


def is_long(depth: Expr | int) -> bool:
    """Return whether a product may be of more steps than are added up by themselves."""
    return not isinstance(depth, int) or depth > PIECE


def pieces(depth: Expr | int, *, invariant: bool = False) -> tuple[int, Expr | int]:
    """Return (steps at a time, pieces), the pieces as equal as can be.

    Those of an ``invariant`` product are the same, be the depth known or not.
    """
    if invariant or not isinstance(depth, int):
        return PIECE, ceil_quotient(depth, PIECE)
    steps = ceildiv(ceildiv(depth, ceildiv(depth, PIECE)), UNROLL) * UNROLL
    return steps, ceildiv(depth, steps)


def added_to_nothing(value: Expr) -> Expr:
    """Return 0 + x, as the sum of one piece is where there may be several: no zero is negative."""
    zero = const(0, str(value.ty.dtype))
    return prim.Add(value, zero)  # which the operator takes for x


def steps_at_once(tile: Tile) -> int:
    """Return how many steps of k are written behind each other by default."""
    products = tile.rows * tile.vectors
    return next(n for n in (1, 2, UNROLL) if n == UNROLL or n * products >= _LEAST_PRODUCTS)


def tiles(target: Target) -> list[Tile]:
    """Return the largest tile for each number of vectors."""
    if target.registers == 32:
        return [Tile(24, 1), Tile(12, 2), Tile(8, 3), Tile(6, 4)]
    return [Tile(10, 1), Tile(6, 2), Tile(4, 3)]


def thin_tiles(target: Target, rows: Dim) -> list[Tile]:
    """Return tiles of that height and many vectors, for so few rows that they are better.

    The widest comes first. Narrower ones, of sums enough to hide a latency, may cut the columns
    into panels of which less is waste.
    """
    wide = {1: 8, 2: 5, 3: 4} if target.registers == 16 else {1: 16, 2: 10, 3: 7}
    if not isinstance(rows, int) or rows not in wide:
        return []
    least = min(wide[rows], ceildiv(_LEAST_SUMS, rows))
    return [Tile(rows, vectors) for vectors in range(wide[rows], least - 1, -1)]


def other_tiles(target: Target) -> list[Tile]:
    """Return tiles that are worth a measurement: fewer rows, or nearly all registers."""
    if target.registers == 32:
        return [Tile(16, 1), Tile(14, 2), Tile(8, 2), Tile(9, 3), Tile(5, 4)]
    return [Tile(12, 1), Tile(8, 1), Tile(5, 2), Tile(4, 2)]


@dataclass(frozen=True)
class Operands:
    """Where one step of k finds its elements.

    Attributes:
        dtype: The compute dtype.
        lanes: Elements in a vector.
        row: Element k of row i, as a scalar.
        vector: Vector j at step k.
        ahead: Asks, at step k of those that are unrolled, for what is read later.
        dot: Adds to sums the products of a step.
        start: What the sums of vector j start with; None for zeros.
        far: Whether the steps that are unrolled are far apart, not next to each other: for vectors
            from beyond the caches, which the hardware then fetches ahead in several streams.
    """

    dtype: str
    lanes: int
    row: Callable[[int, Expr | int], Expr]
    vector: Callable[[int, Expr | int], Expr]
    dot: Dot
    start: Callable[[int], Expr] | None = None
    ahead: Callable[[Expr | int], None] | None = None
    far: bool = False

    def behind(self, first: Expr | int) -> Operands:
        """Return the operands of the steps from ``first`` on, for sums that have started."""
        ahead = self.ahead
        return replace(
            self,
            row=lambda i, k: self.row(i, first + k),
            vector=lambda j, k: self.vector(j, first + k),
            start=None,
            ahead=None if ahead is None else lambda k: ahead(first + k),
        )


def multiply(
    block: Block, tile: Tile, depth: Expr | int, operands: Operands, unroll: int
) -> Buffer:
    """Write the loop over k and return the sums, ``rows * vectors`` vector registers."""
    sums = new_sums(block, tile, operands)
    add_products(block, tile, depth, operands, sums, unroll)
    return sums


def new_sums(block: Block, tile: Tile, operands: Operands) -> Buffer:
    """Return the registers of the sums, holding what they start with."""
    vector = f"{operands.dtype}x{operands.lanes}"
    sums = block.registers(tile.rows * tile.vectors, vector)
    first = operands.start or (lambda _: const(0, vector))
    starts = [block.let(first(j)) for j in range(tile.vectors)]
    for i in range(tile.rows * tile.vectors):
        block.store(sums, i, starts[i % tile.vectors])
    return sums


def add_products(  # noqa: PLR0913, PLR0917 - a loop and what it reads
    block: Block,
    tile: Tile,
    depth: Expr | int,
    operands: Operands,
    sums: Buffer,
    unroll: int,
) -> None:
    """Write the loop over k, ``unroll`` steps at a time; a rest of known length is unrolled too."""
    lanes = operands.lanes

    def step(k: Expr | int) -> None:
        vectors = [block.let(operands.vector(j, k), "b") for j in range(tile.vectors)]
        for i in range(tile.rows):
            a = block.let(tirx.Broadcast(operands.row(i, k), lanes), "a")
            for j, b in enumerate(vectors):
                slot = index(i * tile.vectors + j)
                total = tirx.BufferLoad(sums, [slot])
                block.store(sums, slot, operands.dot(block, total, a, b))

    whole = quotient(depth, unroll)
    pitch, apart = (1, whole) if operands.far else (unroll, 1)
    if whole != 0:
        with block.loop(whole, "k") as k:
            first = block.bind(k * pitch, "k")
            if operands.ahead is not None:
                operands.ahead(first)
            for u in range(unroll):
                step(first + u * apart)
    if isinstance(depth, int):
        for k_rest in range(depth // unroll * unroll, depth):
            step(k_rest)
    else:
        with block.loop(depth - whole * unroll, "k") as k:
            step(whole * unroll + k)
