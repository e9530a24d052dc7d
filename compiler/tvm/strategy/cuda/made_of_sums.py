"""What a stage makes of sums that a thread has in registers, some side by side in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from composite.compiler.tvm.codegen.access import Access, Index
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.vectors import Lanes, Loads, read_in_place, vector_width


class MadeOfSums:
    """What a stage makes of its anchor, whose elements are the sums.

    Attributes:
        width: How many elements side by side are made at a time; ``most`` at most.
    """

    def __init__(self, stage: Stage, anchor: Tensor, context: Context, most: int = 8) -> None:
        self._stage = stage
        self._anchor = anchor
        self._context = context
        # Its own results are computed, never loaded: nobody has stored them yet.
        made = {anchor, *stage.stores}
        self._reading = replace(context, space=context.space.without(made))
        self._read = read_in_place(stage.stores, stage.shape, made, context)
        everything = [*stage.stores, *self._read]
        self.width = min(most, vector_width(everything, stage.shape[-1], context))

    def store(self, at: list[Index], sums: Sequence[Expr]) -> None:
        """Compute and store what is made of so many sums, the first of which is element ``at``."""
        access = self._reading.access()
        lanes = Lanes(self._context, at, self.width)
        _give(access, self._anchor, lanes, sums)
        Loads(self._reading, access, self._read).load(lanes)
        stores = self._stage.stores
        values = [[access.compute(t, place) for place in lanes.places] for t in stores]
        for tensor, elements in zip(stores, values, strict=True):
            lanes.store(tensor, elements)


def _give(access: Access, anchor: Tensor, lanes: Lanes, sums: Sequence[Expr]) -> None:
    """Let elements of the anchor be those that a lane has, which its column tells apart."""
    own = {id(place[-1]): value for place, value in zip(lanes.places, sums, strict=True)}

    def element(at: Sequence[Index]) -> Expr:
        return own[id(at[-1])] if len(sums) > 1 else sums[0]

    access.give(anchor, element)
