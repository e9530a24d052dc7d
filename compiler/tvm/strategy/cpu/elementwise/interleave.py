"""How many registers' worth of elements a chain of operations is computed on at a time.

Each instruction of a chain waits for the one before it, and a CPU looks only a few dozen
instructions ahead: with one register at a time, it reaches the next, independent chain too late.
Given a vector of several registers, LLVM interleaves their chains, instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Constant, Expr, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.target import Target

_CHOICES = (4, 2, 1)
_BESIDE = 2
"""Registers that a chain needs beside those for what it reads."""
_WASTE = 8
"""The last vector of a row overlaps its neighbour: a width is taken if that computes at most one in
so many elements twice."""


def interleaving(roots: Iterable[Tensor], is_read: Callable[[Tensor], bool], target: Target) -> int:
    """Return how many chains that compute ``roots`` fit into the registers.

    1 if a chain is more than arithmetic on what ``is_read``, or computes in 64 bits, where a
    function may be a call for each lane.
    """

    def is_inside(tensor: Tensor) -> bool:
        return not is_read(tensor) and isinstance(tensor.node, Pointwise | Reshape)

    reads: list[Tensor] = []
    for tensor in reachable(roots, lambda t: t.node.operands if is_inside(t) else ()):
        if ITEM_SIZE[compute_dtype(tensor.dtype)] == 8:
            return 1
        if is_read(tensor):
            reads.append(tensor)
        elif not isinstance(tensor.node, Pointwise | Reshape | Constant):
            return 1
    # A value of a whole row takes one register, however many chains are interleaved.
    values = sum(isinstance(t.node, Reduce) or product(t.shape) == 1 for t in reads)
    held = len(reads) - values + _BESIDE
    return next((n for n in _CHOICES if n * held + values <= target.registers), 1)


def interleave_in_row(most: int, lanes: int, count: Expr | int) -> int:
    """Return the interleaving, ``most`` or less, for a row of ``count`` elements; 1 if unknown."""
    if not isinstance(count, int):
        return 1
    for n in _CHOICES:
        width = n * lanes
        if n <= most and count >= width and -count % width * _WASTE <= count:
            return n
    return 1
