"""Find inputs whose buffer an output may take over.

TensorFlow's element-wise ops write over an input that nobody else needs. A kernel may, where the
stage that makes the output reads the input at the output's own element, or its own row, and nowhere
else, and no later stage reads it. An optimizer's step behind the product that is its gradient then
writes a variable where it lies. It is the strategy that knows whether its loops read an element
before they write its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.ir.anchors import MatMul, Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.tensor import Constant, Parameter, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.views import Iota
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.plan.plan import Plan
from composite.compiler.tvm.plan.row_stages import FLAT, VALUE, Rows, rows_of
from composite.compiler.tvm.plan.stage import Stage

Forwards = tuple[tuple[int, ...], ...]
"""For each output the inputs whose buffer it may take over."""


def readers_first(plan: Plan, stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages with each behind those that read what it may write over.

    As the gradients of a layer: that of its input is made with its weights, which the step behind
    that of the weights writes. A stage stays where one that it would have to follow needs it.
    """
    stored = _stored(stages)
    needs = {stage: stage.needs(stored) for stage in stages}
    order = list(stages)
    for stage in stages:
        at = order.index(stage)
        over = {plan.function.parameters[i] for i in _over(plan, stage, stored)}
        behind = [i for i in range(at + 1, len(order)) if over & needs[order[i]]]
        if not behind:
            continue
        last = behind[-1]
        if not any(stage.made & needs[other] for other in order[at + 1 : last + 1]):
            order[at : last + 1] = [*order[at + 1 : last + 1], stage]
    return order


def forwards(plan: Plan, stages: Sequence[Stage]) -> list[Forwards]:
    """Return for each stage what its outputs may take over, if its loops read before they write."""
    stored = _stored(stages)
    found: list[Forwards] = []
    needed: set[Tensor] = set()  # by the stages behind
    for stage in reversed(stages):
        found.append(_forwards(plan, stage, stored, needed))
        needed |= stage.needs(stored)
    return found[::-1]


def _forwards(plan: Plan, stage: Stage, stored: set[Tensor], needed: set[Tensor]) -> Forwards:
    parameters, size = plan.function.parameters, product(stage.shape)
    inputs = [i for i in _over(plan, stage, stored) if parameters[i] not in needed]

    def over(output: Tensor) -> tuple[int, ...]:
        if output not in stage.stores or product(output.shape) != size:
            return ()
        return tuple(i for i in inputs if parameters[i].dtype == output.dtype)

    return tuple(map(over, plan.outputs))


def _over(plan: Plan, stage: Stage, stored: set[Tensor]) -> list[int]:
    """Return the inputs that a stage may write over, as far as it is concerned."""
    is_known = stage.anchor is None or isinstance(stage.anchor.node, MatMul)
    if not is_known or stage.parts or stage.beside or not {*plan.outputs} & {*stage.stores}:
        return []
    size, read, moved = product(stage.shape), stage.needs(stored), _moved(stage, stored)
    return [
        i
        for i, t in enumerate(plan.function.parameters)
        if t in read and t not in moved and product(t.shape) == size
    ]


def _stored(stages: Sequence[Stage]) -> set[Tensor]:
    return {t for stage in stages for t in stage.stores}


def _moved(stage: Stage, stored: set[Tensor]) -> set[Tensor]:
    """Return what a stage reads, through whatever, at other places than at the one it writes."""
    size, rows = product(stage.shape), rows_of(stage)
    read = stage.needs(stored)
    moved: set[Tensor] = set()
    for tensor in reversed([t for t in topological(tuple(stage.made)) if t in read]):
        stays = _stays_in_place(tensor, size) or (rows is not None and _stays_in_row(tensor, rows))
        if tensor in moved or not stays:
            moved.update(tensor.node.operands)
    return moved


def _stays_in_row(tensor: Tensor, rows: Rows) -> bool:
    """Return whether it is one value a row, made of that row alone."""
    if isinstance(tensor.node, Reshape):
        values = {rows.shape(VALUE), rows.shape(FLAT)}
        return tensor.shape in values and tensor.node.operand.shape in values
    if isinstance(tensor.node, Pointwise):
        return tensor.shape in {rows.shape(VALUE), rows.shape(FLAT)}
    return isinstance(tensor.node, Reduce)  # a stage over rows has no other reductions


def _stays_in_place(tensor: Tensor, size: object) -> bool:
    """Return whether it is made of elements at the same place, counted in row-major order.

    Of operands that have as many: what is smaller is read at many places.
    """
    if isinstance(tensor.node, Reshape):
        return isinstance(tensor.node.operand.node, Parameter)
    if isinstance(tensor.node, Pointwise):
        return product(tensor.shape) == size
    return isinstance(tensor.node, Parameter | Constant | Iota)
