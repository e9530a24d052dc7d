"""Find inputs whose buffer an output may take over.

TensorFlow's element-wise ops write over an input that nobody else needs. A kernel may, where an
element of the output is made of the elements of the inputs at its own place and of nothing else. It
is the strategy that knows whether its loops read an element before they write its place.
"""

from __future__ import annotations

from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.tensor import Constant, Parameter, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.views import Iota
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.plan.plan import Plan

Forwards = tuple[tuple[int, ...], ...]
"""For each output the inputs whose buffer it may take over."""


def forwards(plan: Plan) -> Forwards:
    """Return what the outputs of a plan may take over, if its loops read before they write."""
    nothing: Forwards = ((),) * len(plan.outputs)
    if len(plan.stages) != 1:
        return nothing
    (stage,) = plan.stages
    if stage.anchor is not None or stage.reduced or set(stage.stores) != set(plan.outputs):
        return nothing
    read = reachable(stage.stores, lambda t: t.node.operands)
    if not all(_stays_in_place(t) for t in read):
        return nothing
    size = product(stage.shape)
    inputs = [
        i
        for i, t in enumerate(plan.function.parameters)
        if t in read and product(t.shape) == size  # a smaller one is read at many places
    ]
    return tuple(
        tuple(i for i in inputs if plan.function.parameters[i].dtype == output.dtype)
        for output in plan.outputs
    )


def _stays_in_place(tensor: Tensor) -> bool:
    """Return whether it is made of elements at the same place, counted in row-major order."""
    if isinstance(tensor.node, Reshape):
        return isinstance(tensor.node.operand.node, Parameter)
    return isinstance(tensor.node, Pointwise | Parameter | Constant | Iota)
