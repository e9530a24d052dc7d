"""Which parts of a function become regions, as the runtime's graph pass forms them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary

from composite.binding import native
from composite.compiler import account
from composite.ops import function_op, functions

# Of a function, nothing that a region could take in: its ends, state that it reads, and calls, of
# functions that are looked at by themselves.
_ENDS = frozenset({"Placeholder", "Identity", "NoOp", "Const", "ReadVariableOp"}) | {
    *("PartitionedCall", "StatefulPartitionedCall")
}


@dataclass(frozen=True)
class Region:
    """Nodes of a function that become one.

    Attributes:
        name: of the region's function: equal regions have one, and share their kernels.
        ops: how many nodes of each op are in it, by the op.
        times: how often the region occurs in the function and those that it calls.
        function: what it computes.
        runs: the functions that its loops run.
    """

    name: str
    ops: Counter[str]
    times: int
    function: FunctionDef = field(repr=False, compare=False)
    runs: tuple[FunctionDef, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Partition:
    """A function's regions, and the ops that stay outside of them, by how many nodes they have."""

    regions: tuple[Region, ...]
    outside: Counter[str]


@account.step("find regions")
def partition(function: Any, deny: Sequence[str] = ()) -> Partition:
    """Which regions a tf.ConcreteFunction gets, none with the ops of `deny`.

    Nothing is changed, run or compiled.
    """
    graph = function.graph.as_graph_def()
    library = {f.signature.name: f for f in graph.library.function}
    definition = function.function_def
    library[definition.signature.name] = definition
    bodies: dict[str, FunctionDef] = {}
    times: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    names = [definition.signature.name]
    for name in names:
        order = functions.reachable(name, library)
        request = FunctionDefLibrary(function=[library[n] for n in order])
        request.function[0].attr["_composite_denied"].list.s.extend(op.encode() for op in deny)
        reply = native.call("composite_find_regions", request)
        found = FunctionDefLibrary.FromString(reply).function
        bodies |= {f.signature.name: f for f in found[1:]}
        for node in found[0].node_def:
            region = node.attr["f"].func.name if node.op == function_op.NAME else ""
            if function_op.is_region(region):
                times[region] += 1
            elif node.op not in _ENDS and node.op not in library:
                outside[node.op] += 1
        # Loops that regions have taken in call nothing by now. Others are of composites.
        for called in functions.called(found[0], library):
            if called not in names and not called.startswith("__composite_"):
                names.append(called)
    regions = []
    for name, count in times.items():
        function, *runs = (bodies[one] for one in functions.reachable(name, bodies))
        ops = Counter(node.op for node in function.node_def)
        regions.append(Region(name, ops, count, function, tuple(runs)))
    return Partition(tuple(regions), outside)
