"""Functions of floats for which calls by name stand over the ring, see :mod:`..algebra`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.block import Block, dtype_of
from composite.compiler.tvm.tir.stand_ins import NAMED


def by_name(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return a function of a block and floats for which a call by its name stands."""

    @functools.wraps(function)
    def written(block: Block, *operands: Expr) -> Expr:
        dtype = str(dtype_of(operands[0]))
        if "float" not in dtype:
            return function(block, *operands)
        call = tirx.call_pure_extern(dtype, NAMED + function.__name__, *operands)
        with block.stand_ins.standing(call) as found:
            return found(function(block, *operands))

    return written
