"""Attention in a plan: a softmax of a product's rows, times another matrix.

The softmax can then be taken while columns of the product come, with the largest number and the sum
so far, and neither the product nor the softmax need be stored. Only the graph decides: a product,
the largest number of each row of what is made of it element by element, the exponential of the
difference to it, the sum of those, and a second product of their quotient. Which op of TensorFlow's
they come from is no matter. Not here: how it is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from composite.compiler.tvm.ir.anchors import MatMul, Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.tensor import Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.walk import reachable, topological, unreshaped
from composite.compiler.tvm.plan.plan import Plan
from composite.compiler.tvm.plan.stage import Stage

_QUOTIENTS = ("Softmax", "RealDiv", "Mul")
"""Of the exponential and one number a row: multiplied or divided, so that it may be done last."""


@dataclass(frozen=True)
class RunningSoftmax:
    """The tensors of an attention, from the first product to the second.

    Attributes:
        scores: The first product.
        logits: What the softmax is of, made of the scores element by element.
        total: The sum of each row of the exponentials of the logits, less the largest of the row.
        share: The quotient of an exponential and ``part``, which is made of the total.
        part: One number a row.
        result: The second product: of the quotient and a matrix.
    """

    scores: Tensor
    logits: Tensor
    total: Tensor
    share: Tensor
    part: Tensor
    result: Tensor


def join_softmax(plan: Plan) -> list[Stage]:
    """Return the stages of a plan, with three of them as parts of one where they are an attention.

    It stands where the last of them did: nothing else reads what the first two made.
    """
    makers = {t: stage for stage in plan.stages for t in stage.stores}
    joined: dict[Stage, Stage] = {}
    gone: set[Stage] = set()
    for stage in plan.stages:
        parts = _parts(stage, makers)
        if parts is None or running_softmax(parts, plan.stored) is None:
            continue
        inner = {t for part in parts[:2] for t in part.stores}
        others = [one for one in plan.stages if one not in parts]
        if inner & {*plan.outputs, *(t for one in others for t in _read(one, makers))}:
            continue
        joined[stage] = Stage(stage.shape, None, stage.stores, parts=parts)
        gone.update(parts[:2])
    return [joined.get(stage, stage) for stage in plan.stages if stage not in gone]


def _parts(last: Stage, makers: dict[Tensor, Stage]) -> tuple[Stage, ...] | None:
    """Return the stages of what may be an attention, by what each reads."""
    if last.anchor is None or not isinstance(last.anchor.node, MatMul):
        return None
    middle = makers.get(unreshaped(last.anchor.node.a))
    if middle is None or len(middle.stores) != 1 or middle.reduced != 1:
        return None
    before = (makers.get(t) for t in _read(middle, makers))
    products = {one for one in before if one is not None and _is_product(one)}
    if len(products) != 1:
        return None
    (first,) = products
    return (first, middle, last) if len(first.stores) == 1 else None


def _is_product(stage: Stage) -> bool:
    return stage.anchor is not None and isinstance(stage.anchor.node, MatMul)


def _read(stage: Stage, makers: Mapping[Tensor, Stage]) -> list[Tensor]:
    """Return what a stage computes and reads, down to what others store."""

    def below(tensor: Tensor) -> tuple[Tensor, ...]:
        return tensor.node.operands if makers.get(tensor, stage) is stage else ()

    return reachable([*stage.made], below)


def running_softmax(parts: Sequence[Stage], stored: Collection[Tensor]) -> RunningSoftmax | None:
    """Return the tensors of an attention whose stages these are; None if they are none."""
    if len(parts) != 3:
        return None
    first, middle, last = parts
    scores, result = first.anchor, last.anchor
    if scores is None or result is None or not isinstance(result.node, MatMul):
        return None
    if not isinstance(scores.node, MatMul) or result.node.transpose_a:
        return None
    share = unreshaped(result.node.a)
    if middle.stores != [share]:
        return None
    found = _softmax(_without_casts(share), scores, result)
    if found is None or not _is_made_in_place(found.logits, scores, {*stored} - {*first.stores}):
        return None
    # All else that the end reads must be there before: the second matrix, what is added, say.
    inner = {scores, *first.stores, *middle.stores}
    ends = [result.node.b, *last.stores]
    if inner & {*reachable(ends, lambda t: () if t is result else t.node.operands)}:
        return None
    return found


def _softmax(share: Tensor, scores: Tensor, result: Tensor) -> RunningSoftmax | None:
    """Return what a quotient is made of, from the end."""
    node = share.node
    if not isinstance(node, Pointwise) or node.op not in _QUOTIENTS or len(node.operands) != 2:
        return None
    power, part = node.operands
    if not isinstance(power.node, Pointwise) or power.node.op != "Exp":
        return None
    (difference,) = power.node.operands
    if not isinstance(difference.node, Pointwise) or difference.node.op != "Sub":
        return None
    logits, largest = difference.node.operands
    most, totals = unreshaped(largest), _reductions(part)
    if len(totals) != 1 or not _is_reduction(most, "Max", logits):
        return None
    (total,) = totals
    one_a_row = (*logits.shape[:-1], 1)  # a row of as many numbers would be one a column
    if not _is_reduction(total, "Sum", power) or {part.shape, largest.shape} != {one_a_row}:
        return None
    # The same matrices everywhere: the second product repeats none, no reshape mixes them.
    if not isinstance(result.node, MatMul) or logits.rank < 2:
        return None
    matrices = (logits, scores, result.node.a)
    if len({t.shape[-2:] for t in matrices}) != 1:
        return None
    if len({product(t.shape[:-2]) for t in (*matrices, result)}) != 1:
        return None
    return RunningSoftmax(scores, logits, total, share, part, result)


def _is_reduction(tensor: Tensor, name: str, of: Tensor) -> bool:
    node = tensor.node
    return (
        isinstance(node, Reduce)
        and node.combine.name == name
        and node.operand is of
        and node.axes == (of.rank - 1,)
    )


def _reductions(tensor: Tensor) -> list[Tensor]:
    """Return the reductions that a tensor is made of, element by element."""

    def below(t: Tensor) -> tuple[Tensor, ...]:
        return t.node.operands if isinstance(t.node, Pointwise | Reshape) else ()

    return [t for t in reachable([tensor], below) if isinstance(t.node, Reduce)]


def _is_made_in_place(tensor: Tensor, of: Tensor, given: set[Tensor]) -> bool:
    """Return whether each element is made of the same one of another tensor, and of no sum."""
    size, reads = product(of.shape), {of: True}
    for one in topological([tensor], lambda t: () if t is of or t in given else t.node.operands):
        if one is of:
            continue
        reads[one] = one not in given and any(reads[t] for t in one.node.operands)
        if isinstance(one.node, Reduce) and one not in given:
            return False
        if not reads[one]:
            continue
        if not isinstance(one.node, Pointwise | Reshape) or product(one.shape) != size:
            return False
        if any(reads[t] and product(t.shape) != size for t in one.node.operands):
            return False
    return reads[tensor]


def _without_casts(tensor: Tensor) -> Tensor:
    while isinstance(tensor.node, Pointwise) and tensor.node.op == "Cast":
        (tensor,) = tensor.node.operands
    return tensor
