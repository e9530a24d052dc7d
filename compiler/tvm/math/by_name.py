"""Functions of floats that a kernel over the ring has as calls by name, see :mod:`..algebra`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.block import NAMED, Block, dtype_of


def by_name(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return a function of a block and floats that can be written as a call by its name."""

    @functools.wraps(function)
    def written(block: Block, *operands: Expr) -> Expr:
        if not (block.named and "float" in str(dtype_of(operands[0]))):
            return function(block, *operands)
        dtype = str(dtype_of(operands[0]))
        return block.let(tirx.call_pure_extern(dtype, NAMED + function.__name__, *operands))

    return written
