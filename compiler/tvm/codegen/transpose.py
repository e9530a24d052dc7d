"""Squares of vectors, transposed in registers."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import bits, element, fence
from composite.compiler.tvm.tir.block import Block


def transpose(block: Block, rows: Sequence[Expr]) -> list[Expr]:
    """Transpose a square of ``len(rows)`` vectors by butterflies: log2 stages of shuffles.

    Fences keep LLVM from folding the stages into one: it then moves every element by itself. They
    are of floats; int32 are moved as their bits.
    """
    size, dtype = len(rows), element(rows[0])
    moved = {"int32": "float32"}.get(dtype, dtype)
    current = [block.let(r if moved == dtype else bits(r, moved)) for r in rows]
    width = 1
    while width < size:
        following: list[Expr] = list(current)
        for i in range(size):
            if i & width:
                continue
            a, b = current[i], current[i | width]
            low, high = butterfly(width, size)
            following[i] = block.let(fence(tirx.Shuffle([a, b], low)))
            following[i | width] = block.let(fence(tirx.Shuffle([a, b], high)))
        current = following
        width *= 2
    return current if moved == dtype else [block.let(bits(one, dtype)) for one in current]


def butterfly(width: int, size: int) -> tuple[list[int], list[int]]:
    """Return the shuffles of two vectors that exchange blocks of ``width`` lanes.

    The first keeps a's even blocks and fetches b's into the odd places; the second fetches a's odd
    blocks into the even places and keeps b's.
    """
    low, high = [], []
    for lane in range(size):
        from_second = size if lane & width else 0
        low.append((lane & ~width) + from_second)
        high.append((lane | width) + from_second)
    return low, high
