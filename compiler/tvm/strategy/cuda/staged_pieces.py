"""Pieces of both factors of a product: some are multiplied while the next ones are brought.

How a piece lies in shared memory: :mod:`.staged_factor`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.codegen.device_block import Place
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.staged_factor import Corner, Factor, StagedFactor, Team
from composite.compiler.tvm.strategy.cuda.vectors import device_block
from composite.compiler.tvm.tir.block import Buffer, index, quotient, remainder

Start = tuple[Sequence[Index], Expr]
"""Where a factor of a rectangle begins: its batch, and the dimension that is not the inner one."""


class StagedPieces:
    """Pieces of ``piece`` elements of the inner dimension, of as many rows or columns as ``sides``.

    Attributes:
        factors: The factors, of which there are two.
        bytes: Of a piece of both.
    """

    def __init__(
        self, factors: Sequence[Factor], sides: Sequence[int], piece: int, context: Context
    ) -> None:
        self.factors = [
            StagedFactor(factor, side, piece, context)
            for factor, side in zip(factors, sides, strict=True)
        ]
        self.bytes = sum(one.bytes for one in self.factors)
        self._block = device_block(context)
        self._piece = piece
        self._count = quotient(index(context.size(factors[0].depth) + (piece - 1)), piece)

    def go_through(
        self,
        team: Team,
        pool: Buffer,
        stages: int,
        starts: Sequence[Start],
        multiply: Callable[[Sequence[Place]], None],
    ) -> None:
        """Bring all pieces, ``stages`` of which ``pool`` holds at a time, and multiply them.

        ``starts`` are those of the factors; ``multiply`` is told where a piece of each one is.
        """
        block, factors = self._block, self.factors
        views = [one.view(pool) for one in factors]
        in_front = (0, stages * factors[0].elements)  # the first factor's pieces lie in front

        def places(piece: Expr) -> list[Place]:
            slot = block.bind(remainder(piece, stages), "slot")
            return [
                Place(view, block.bind(slot * one.elements + at, "at"))
                for one, view, at in zip(factors, views, in_front, strict=True)
            ]

        def begin(piece: Expr) -> list[Callable[[], None]]:
            inner = block.bind(piece * self._piece, "inner")
            ends = [
                one.begin(team, to, Corner(*start, inner))
                for one, to, start in zip(factors, places(piece), starts, strict=True)
            ]
            block.call("composite_commit_copies")
            return ends

        with block.loop(stages - 1, "early") as number:
            for end in begin(number):
                end()
        with block.loop(self._count, "piece") as piece:
            block.call(f"composite_wait_for_copies<{stages - 2}>")
            # All have what they waited for, and nobody reads what the next copies replace.
            block.barrier()
            ends = begin(block.bind(piece + (stages - 1), "coming"))
            multiply(places(piece))
            for end in ends:
                end()
        block.call("composite_wait_for_copies<0>")
