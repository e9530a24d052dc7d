"""Make one tensor of those that are computed alike.

Passes that rebuild parts of a function, and reshapes that move, leave tensors that differ in
nothing. Each is written, and its cost counted, wherever it is read. Not for loops, whose trips are
functions of their own, nor for anchors other than reductions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Pointwise, Reshape, Tensor, Transpose
from composite.compiler.tvm.ir.views import Concat, Slice
from composite.compiler.tvm.ir.walk import rebuilt
from composite.compiler.tvm.passes.rewriting import rewritten

_COMPARED = Pointwise | Reduce | Reshape | Transpose | Slice | Concat


def merge_equal(function: Function) -> Function:
    """Return the function with one tensor for all that have equal nodes."""
    first: dict[Hashable, Tensor] = {}

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        again = rebuilt(tensor, made)
        if not isinstance(again.node, _COMPARED) or tensor in function.outputs:
            return again
        own = tuple(getattr(again.node, one.name) for one in fields(again.node))
        key = (type(again.node), again.shape, again.dtype, again.is_result, own)
        return first.setdefault(key, again)

    return rewritten(function, rule)
