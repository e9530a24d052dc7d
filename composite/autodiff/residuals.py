"""What a forward keeps for its backward, and what the backward computes again.

A value is kept if computing it again takes many operations for each byte of it: the memory of a
machine gives a byte in about the time of ten operations. So matrix products and reductions are
kept, and element-wise chains are computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf

from composite.autodiff import graph_cut
from composite.compiler import op_traits
from composite.compiler.op_traits import cost
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


def to_save(graph: Any, recomputed: Collection[str]) -> list[str]:
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
    behind it would have it run again. Lists are never kept: a loop that makes one runs again, and
    no gradient would come back through a function that gives or takes a list.
    """
    operations = graph.get_operations()
    producers = {op.name: [x.name for x in op.inputs] for op in operations}
    found: list[str] = []
    for loop in operations:
        if loop.type == "StatelessWhile" and loop.name in forward:
            before = graph_cut.ancestors(loop.name, producers, ()) & set(recomputed)
            made = [y for op in operations if op.name in before for y in op.outputs]
            found += [y.name for y in (*made, *loop.outputs) if y.dtype != tf.variant]
            found += _behind(loop, recomputed)
    return found


def _behind(loop: Any, recomputed: Collection[str]) -> list[str]:
    """What a loop's lists are stacked to."""
    readers = [op for y in loop.outputs if y.dtype == tf.variant for op in y.consumers()]
    stacks = [op for op in readers if op.type == "TensorListStack" and op.name in recomputed]
    return [op.outputs[0].name for op in stacks]


def _is_dear(op: Any) -> bool:
    traits = op_traits.of(op.type)
    result = op.outputs[0]
    if traits.terms is None or not result.dtype.is_floating:
        return False
    operands = [_dims(x.shape) for x in op.inputs]
    flops = cost.flops_per_element(traits, operands, _dims(result.shape), op.get_attr)
    return flops is None or flops / result.dtype.size >= _OPERATIONS_A_BYTE


def _dims(shape: tf.TensorShape) -> cost.Shape:
    return None if shape.rank is None else list(shape)
