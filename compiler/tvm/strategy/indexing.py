"""Shapes as the indices of a kernel: how many elements there are, and where one of them is."""

from __future__ import annotations

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.ir.dims import Shape, product
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.tir.block import quotient, remainder


def elements(shape: Shape, context: Context) -> Expr | int:
    """Return the number of elements of a shape."""
    return context.size(product(shape))


def unflatten(context: Context, flat: Expr | int, shape: Shape) -> list[Index]:
    """Return the indices of a row-major place."""
    if len(shape) == 1:
        return [flat]
    indices: list[Index] = []
    for i, (dim, stride) in enumerate(zip(shape, context.space.strides(shape), strict=True)):
        if dim == 1:
            indices.append(0)
            continue
        step = quotient(flat, stride)
        # The first index needs no modulus: the place lies within the shape.
        first = all(d == 1 for d in shape[:i])
        indices.append(
            context.block.bind(step if first else remainder(step, context.size(dim)), "i")
        )
    return indices
