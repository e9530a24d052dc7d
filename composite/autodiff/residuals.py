"""What a forward keeps for its backward, and what the backward computes again.

Chosen such that both together are the cheapest: what is kept is written and read, what is computed
again takes operations, and what that is made of has to be there too. The choice is a cut
of least capacity (Chen et al., "Training deep nets with sublinear memory cost", 2016, has the
question; He and Yu, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware",
MLSys 2023, the cut). So means, products and softmaxes are kept, and cheap element-wise chains are
computed again where they are read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf

from composite.autodiff import graph_cut, min_cut
from composite.compiler import op_traits
from composite.compiler.op_traits import cost
from composite.ops import functions

# The memory of a machine gives or takes a byte in about the time of ten operations.
_OPERATIONS_A_BYTE = 10
_UNKNOWN = 64  # stands for a dim that is not known: most tensors of a body have the same ones

_ENDLESS = 1 << 60  # no cut goes through an edge of this capacity
_DEAR = 1 << 50  # operations of what nothing is known of
_GIVEN = frozenset({"Const", "Placeholder"})
_BACKWARD, _FREE = "", "/"  # source and sink: names that no node and no tensor has


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


def to_save(
    graph: Any, computed: Collection[str], forward: Collection[str], kept: Collection[str] = ()
) -> list[str]:
    """The tensors to keep, by name.

    `computed` names the nodes that a backward would compute if nothing was kept, those that are in
    `forward` again. What else they read is given, as are the tensors in `kept`.
    """
    operations = [op for op in graph.get_operations() if op.name in computed]
    again = [op for op in operations if op.name in forward]
    own = {x.name for op in operations if op.name not in forward for x in op.inputs}
    edges: dict[tuple[str, str], int] = {}
    for op in again:
        edges[op.name, _FREE] = _operations(op)
        for y in op.outputs:
            edges[y.name, op.name] = 0 if y.name in kept else _price(y, forward)
            if y.name in own:
                edges[_BACKWARD, y.name] = _ENDLESS
        for x in op.inputs:
            is_given = x.op.name not in computed
            if is_given and op_traits.of(op.type).moves_data:  # it may read a part alone
                edges[op.name, _FREE] += min(map(_reading, (x, *op.outputs)))
            elif not is_given or x.name not in own:
                edges[op.name, x.name] = _ENDLESS
                if is_given:
                    edges[x.name, _FREE] = _reading(x)
    needed = min_cut.source_side(edges, _BACKWARD, _FREE)
    return [
        y.name
        for op in again
        for y in op.outputs
        if y.name in needed and op.name not in needed and y.name not in kept
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
            made = [op for op in operations if op.name in before and op.type not in _GIVEN]
            found += [y.name for op in made for y in op.outputs if _is_number(y)]
            found += [y.name for y in loop.outputs if y.dtype != tf.variant]
            found += _behind(loop, recomputed)
    return found


def _behind(loop: Any, recomputed: Collection[str]) -> list[str]:
    """What a loop's lists are stacked to."""
    readers = [op for y in loop.outputs if y.dtype == tf.variant for op in y.consumers()]
    stacks = [op for op in readers if op.type == "TensorListStack" and op.name in recomputed]
    return [op.outputs[0].name for op in stacks]


def _is_number(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)


def _price(tensor: Any, forward: Collection[str]) -> int:
    """What it takes to keep a tensor, in operations."""
    if not tensor.dtype.is_floating:
        return _ENDLESS
    traits = op_traits.of(tensor.op.type)
    # An activation in front of a product is written in any case. Memory is read before it is
    # written, a cache line at a time, and read again by the backward.
    is_operand = any(op.name in forward and _multiplies(op) for op in tensor.consumers())
    times = 1 if is_operand and traits.elementwise else 3
    # Of a value and what only moves it, the value is kept.
    return times * _reading(tensor) + traits.moves_data


def _multiplies(op: Any) -> bool:
    """Whether an operation is a product or a convolution, whose operands lie in memory."""
    return op_traits.of(op.type).terms not in {None, op_traits.Terms.REDUCED}


def _reading(tensor: Any) -> int:
    """What it takes to read a tensor, in operations."""
    return _OPERATIONS_A_BYTE * _bytes(tensor)


def _bytes(tensor: Any) -> int:
    return math.prod(_dims(tensor.shape) or []) * max(tensor.dtype.size, 1)


def _operations(op: Any) -> int:
    """What it takes to compute an operation again."""
    if op.type in _GIVEN:
        return 0
    if op.type not in op_traits.TABLE:
        return _DEAR
    traits = op_traits.of(op.type)
    operands, results = ([_dims(x.shape) for x in side] for side in (op.inputs, op.outputs))
    found = cost.operations(traits, operands, results, op.get_attr)
    if found is None:
        return _DEAR
    # What is no element-wise work has loops of its own, which pass their results on in memory.
    passed = () if traits.elementwise or traits.moves_data else op.outputs
    return int(found) + sum(map(_reading, passed))


def _dims(shape: tf.TensorShape) -> list[int] | None:
    if shape.rank is None:
        return None
    return [_UNKNOWN if dim is None else dim for dim in shape.as_list()]
