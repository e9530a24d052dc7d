"""Indices of elements: ints, index expressions, and lanes of a vector.

Nothing here reads or writes; :mod:`.access` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.block import INDEX, Block, index, lanes_of, spread


@dataclass(frozen=True, eq=False)
class Lane:
    """Indices ``base``, ``base + step``, ...: one for each of ``lanes`` elements."""

    base: Expr | int
    lanes: int
    step: int = 1

    @property
    def reach(self) -> int:
        """Indices from the first to the last, both of them counted."""
        return abs(self.step) * (self.lanes - 1) + 1


Index = Any  # int, TVM expression or Lane


def moved(place: Index, by: Expr | int) -> Index:
    """Return an index moved by some elements."""
    if isinstance(by, int) and by == 0:
        return place
    if isinstance(place, Lane):
        return Lane(place.base + by, place.lanes, place.step)
    return place + by


def as_expr(i: Index) -> Expr | int:
    """Return an index as an expression, a vector for a Lane."""
    if isinstance(i, Lane):
        return tirx.Ramp(index(i.base), index(i.step), i.lanes)
    return i


def lanes_at(at: Sequence[Index]) -> int:
    """Return how many elements the indices name."""
    return max((lanes_of(index(as_expr(i))) for i in at if not isinstance(i, int)), default=1)


def lane_of(block: Block, i: Index) -> Callable[[Expr], Expr | int]:
    """Return what one index is in a lane whose number is an expression."""
    if isinstance(i, Lane):
        return lambda lane: block.bind(i.base + lane * i.step)
    if isinstance(i, int) or lanes_of(i) == 1:
        return lambda _: i
    cells = block.registers(lanes_of(i), INDEX, "places")
    block.store(cells, 0, i)
    return lambda lane: block.let(tirx.BufferLoad(cells, [lane]))


def flat_index(at: Sequence[Index], strides: Sequence[Expr | int]) -> Index:
    """Return the place in row-major order: a Lane as long as one index at most is a vector."""
    vectors = [i for i in at if isinstance(i, Lane)]
    others = [i for i in at if not isinstance(i, Lane | int) and lanes_of(i) > 1]
    if len(vectors) != 1 or others:
        terms = [as_expr(i) * s for i, s in zip(at, strides, strict=True)]
        lanes = max((lanes_of(t) for t in terms if not isinstance(t, int)), default=1)
        total: Index = 0
        for term in terms:
            total = total + (term if isinstance(term, int) else spread(term, lanes))
        return total
    base: Expr | int = 0
    step: Expr | int = 0
    for i, s in zip(at, strides, strict=True):
        base = base + (i.base if isinstance(i, Lane) else i) * s
        step = step + (s * i.step if isinstance(i, Lane) else 0)
    return Lane(base, vectors[0].lanes, step)


def matching_groups(left: Shape, right: Shape) -> list[tuple[list[int], list[int]]]:
    """Cut two shapes of one size into the finest runs of dimensions with equal products."""
    if 0 in (*left, *right):  # nothing will be read
        return [(list(range(len(left))), list(range(len(right))))]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) or j < len(right):
        ours: list[int] = []
        theirs: list[int] = []
        a: Dim = 1
        b: Dim = 1
        while not (ours or theirs) or a != b:
            grow_left = i < len(left) and (j >= len(right) or _not_larger(a, b))
            if grow_left:
                a = a * left[i]
                ours.append(i)
                i += 1
            elif j < len(right):
                b = b * right[j]
                theirs.append(j)
                j += 1
            else:
                raise NotCovered(f"reshape of {right} to {left}: sizes are not known to agree")
        groups.append((ours, theirs))
    return groups


def _not_larger(a: Dim, b: Dim) -> bool:
    """Return whether to grow ``a`` next: it is smaller, or it divides what cannot be compared."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return a != 0 and dims.divide(b, a) is not None
