"""What a forward keeps for its backward, and what the backward computes again.

A value is kept if computing it again takes many operations for each byte of it: the memory of a
machine gives a byte in about the time of ten operations. So matrix products and reductions are
kept, and element-wise chains are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import tensorflow as tf

from composite.autodiff import graph_cut
from composite.ops import functions

_OPERATIONS_A_BYTE = 10.0


def is_possible(graph: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
    """Whether a forward can keep anything.

    Not one with branches, of which only one has run, or with state, which would be changed twice;
    nor one that gives an input on as it is, which no function can.
    """
    operations = graph.get_operations()
    stateful = any(op.op_def is not None and op.op_def.is_stateful for op in operations)
    given = {x.name for x in inputs} & {y.name for y in outputs}
    return not (stateful or given or any(map(_calls, operations)))


def _calls(op: Any) -> bool:
    """Whether an operation runs functions, but for loops, whose results are there in any case."""
    values = op.node_def.attr.values()
    return op.type != "StatelessWhile" and any(map(functions.named_by, values))


def kept(graph: Any, recomputed: Collection[str]) -> list[str]:
    """The tensors to keep, by name, of the nodes that a backward would compute again."""
    return [
        op.outputs[0].name
        for op in graph.get_operations()
        if op.name in recomputed and len(op.outputs) == 1 and _is_dear(op)
    ]


def around_loops(graph: Any, forward: Collection[str], recomputed: Collection[str]) -> list[str]:
    """What else to keep beside what trips left behind: all that goes into loops or comes out.

    `forward` names the nodes of the forward, `recomputed` those that a backward computes again.
    Computed again, values in front of a loop would not be those that the trips had, and values
    behind it would have it run again.
    """
    operations = graph.get_operations()
    producers = {op.name: [x.name for x in op.inputs] for op in operations}
    found: list[str] = []
    for loop in operations:
        if loop.type == "StatelessWhile" and loop.name in forward:
            before = graph_cut.ancestors(loop.name, producers, ()) & set(recomputed)
            found += [y.name for op in operations if op.name in before for y in op.outputs]
            found += [y.name for y in loop.outputs if y.dtype != tf.variant]
            found += _behind(loop, recomputed)
    return found


def _behind(loop: Any, recomputed: Collection[str]) -> list[str]:
    """What a loop's lists are stacked to."""
    readers = [op for y in loop.outputs if y.dtype == tf.variant for op in y.consumers()]
    stacks = [op for op in readers if op.type == "TensorListStack" and op.name in recomputed]
    return [op.outputs[0].name for op in stacks]


def _is_dear(op: Any) -> bool:
    terms = _TERMS.get(op.type)
    if terms is None or not op.outputs[0].dtype.is_floating:
        return False
    count = terms(op)
    return count is None or 2 * count / op.outputs[0].dtype.size >= _OPERATIONS_A_BYTE


def _product(dims: Any) -> int | None:
    """The product of sizes; None where one is unknown."""
    result = 1
    for dim in dims:
        if dim is None:
            return None
        result *= dim
    return result


def _inner(transposed: str) -> Callable[[Any], int | None]:
    """How many terms an element of a matrix product sums up."""

    def terms(op: Any) -> int | None:
        shape = op.inputs[0].shape
        if shape.rank is None:
            return None
        dim: int | None = shape[-2 if op.get_attr(transposed) else -1]
        return dim

    return terms


def _window(op: Any) -> int | None:
    """The same of a convolution: all of its filter but the output channels."""
    shape = op.inputs[1].shape
    return None if shape.rank is None else _product(shape[:-1])


def _reduced(op: Any) -> int | None:
    """The same of a reduction; None also where it makes a small value of an unknown size."""
    source, result = op.inputs[0].shape, op.outputs[0].shape
    if not source.is_fully_defined() or not result.is_fully_defined():
        return None
    return int(source.num_elements() // max(result.num_elements(), 1))


_TERMS: dict[str, Callable[[Any], int | None]] = {
    "MatMul": _inner("transpose_a"),
    "BatchMatMul": _inner("adj_x"),
    "BatchMatMulV2": _inner("adj_x"),
    "BatchMatMulV3": _inner("adj_x"),
    "Einsum": lambda _: None,
    "Conv2D": _window,
    "Conv3D": _window,
    "Sum": _reduced,
    "Mean": _reduced,
    "Prod": _reduced,
    "Max": _reduced,
    "Min": _reduced,
}
