"""Find inputs whose buffer an output may take over.

TensorFlow's element-wise ops write over an input that nobody else needs. A kernel may, where an
element of the output is made of the elements of the inputs at its own place and of nothing else, or
of nothing else than its own row. It is the strategy that knows whether its loops read an element
before they write its place.
"""

from __future__ import annotations

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.tensor import Constant, Parameter, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.views import Iota
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.plan.plan import Plan
from composite.compiler.tvm.plan.row_stages import FLAT, VALUE, Rows, rows_of

Forwards = tuple[tuple[int, ...], ...]
"""For each output the inputs whose buffer it may take over."""


def forwards(plan: Plan) -> Forwards:
    """Return what the outputs of a plan may take over, if its loops read before they write."""
    nothing: Forwards = ((),) * len(plan.outputs)
    if len(plan.stages) != 1:
        return nothing
    (stage,) = plan.stages
    if stage.anchor is not None or set(stage.stores) != set(plan.outputs):
        return nothing
    read = reachable(stage.stores, lambda t: t.node.operands)
    rows = rows_of(stage)
    if not all(_stays_in_place(t) or (rows and _stays_in_row(t, rows)) for t in read):
        return nothing
    size = product(stage.shape)
    inputs = [
        i
        for i, t in enumerate(plan.function.parameters)
        if t in read and product(t.shape) == size  # a smaller one is read at many places
    ]
    return tuple(
        tuple(
            i
            for i in inputs
            if product(output.shape) == size and plan.function.parameters[i].dtype == output.dtype
        )
        for output in plan.outputs
    )


def _stays_in_row(tensor: Tensor, rows: Rows) -> bool:
    """Return whether it is one value a row, made of that row alone."""
    if isinstance(tensor.node, Reshape):
        values = {rows.shape(VALUE), rows.shape(FLAT)}
        return tensor.shape in values and tensor.node.operand.shape in values
    return isinstance(tensor.node, Reduce)  # a stage over rows has no other reductions


def _stays_in_place(tensor: Tensor) -> bool:
    """Return whether it is made of elements at the same place, counted in row-major order."""
    if isinstance(tensor.node, Reshape):
        return isinstance(tensor.node.operand.node, Parameter)
    return isinstance(tensor.node, Pointwise | Parameter | Constant | Iota)
