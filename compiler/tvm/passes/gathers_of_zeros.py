"""Have gathers read 0 where an index is out of range, as TensorFlow's do on GPUs.

On a CPU the call fails there, as TensorFlow's op does. The kernel of a GPU cannot fail a call, so
this pass is for GPUs alone. Not for other checks: an index that TensorFlow answers in another way
(NaN for the loss of a label that is no class), a divisor of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.views import Check, Gather
from composite.compiler.tvm.ir.walk import over
from composite.compiler.tvm.passes.rewriting import in_trips, rewritten


def gathers_of_zeros(function: Function) -> Function:
    """Return the function with gathers that no index fails."""
    return rewritten(function, in_trips(_rule))


def _rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor | None:
    node = tensor.node
    if not isinstance(node, Gather):
        return None
    given = {
        t: made[t.node.operand]
        for t in node.indices
        if isinstance(t.node, Check) and t.node.of_gather
    }
    if not given:
        return None
    return replace(tensor, node=over(replace(node, zero_elsewhere=True), {**made, **given}))
