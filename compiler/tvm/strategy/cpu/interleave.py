"""How many vector registers of a chain of operations are computed abreast.

Each instruction of an element's chain waits for the one before, and a CPU looks a few dozen
instructions ahead: where vectors come one after the other, it sees the next ones too late. A vector
of several registers makes LLVM write an instruction for all of them before the next instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.graph import (
    ITEM_SIZE,
    Constant,
    Expr,
    Pointwise,
    Reduce,
    Reshape,
    Tensor,
    compute_dtype,
)
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.target import Target

_CHOICES = (4, 2, 1)
_BESIDE = 2
"""Registers that a chain holds beside what it reads."""
_WASTE = 8
"""At most one in so many elements is computed twice, where the last vector overlaps another."""


def abreast(roots: Iterable[Tensor], is_read: Callable[[Tensor], bool], target: Target) -> int:
    """Return how many registers of ``roots`` fit: 1 where anything but arithmetic is between.

    ``is_read`` tells what is loaded. Functions of float64 may be calls, a lane at a time.
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
    # A value of a whole row takes one register, however many are abreast.
    values = sum(isinstance(t.node, Reduce) or product(t.shape) == 1 for t in reads)
    held = len(reads) - values + _BESIDE
    return next((n for n in _CHOICES if n * held + values <= target.registers), 1)


def covering(most: int, lanes: int, count: Expr | int) -> int:
    """Return how many registers suit ``count`` elements, which is 1 where it is not known."""
    if not isinstance(count, int):
        return 1
    for n in _CHOICES:
        width = n * lanes
        if n <= most and count >= width and -count % width * _WASTE <= count:
            return n
    return 1
