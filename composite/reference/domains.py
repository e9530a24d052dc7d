"""Inputs whose numbers an expansion does not take as they are drawn.

A root or a logarithm reads some in a sum, as an optimizer's second moment. Where such a sum of both
signs nearly cancels, roundings decide whether there is a number at all, and which: no check could
tell a kernel that is wrong there. Others are cast to places, as the ids of an embedding.

Not for: what is drawn instead (adversarial.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from composite.compiler import op_traits
from composite.compiler.op_traits.traits import Read
from composite.ops.functions import Body

_ROOTS = ("Sqrt", "Rsqrt", "Log", "Pow")
_SUMS = ("AddV2", "Add", "AddN", "Sub")


def under_roots(body: Body) -> frozenset[int]:
    """The inputs that such an op reads through element-wise ops, one of them a sum."""
    nodes = {node.name: node for node in body.graph_def.node}
    roots = (node.input[0] for node in nodes.values() if node.op in _ROOTS)
    found = _read_by(roots, nodes, _SUMS)
    return frozenset(i for i, name in enumerate(body.inputs) if (name, True) in found)


def cast_to_places(body: Body) -> frozenset[int]:
    """The inputs of floating numbers that are cast to integers, which tell places."""
    nodes = {node.name: node for node in body.graph_def.node}
    found = _read_by(_places(nodes.values()), nodes, ("Cast",))
    return frozenset(
        i
        for i, (name, dtype) in enumerate(zip(body.inputs, body.input_dtypes, strict=True))
        if dtype.is_floating and (name, True) in found
    )


def _places(nodes: Iterable[Any]) -> Iterable[str]:
    for node in nodes:
        reads = (op_traits.of(node.op).reads or {}).values()
        for reference, read in zip(node.input, reads, strict=False):
            if read is Read.INDEX:
                yield reference


def _read_by(
    references: Iterable[str], nodes: Mapping[str, Any], through: tuple[str, ...]
) -> set[tuple[str, bool]]:
    """The nodes of which these are made element by element, each with whether `through` an op."""
    pending = [(reference, False) for reference in references]
    seen: set[tuple[str, bool]] = set()
    while pending:
        reference, is_through = pending.pop()
        name = reference.partition(":")[0]
        if (name, is_through) in seen or reference.startswith("^"):
            continue
        seen.add((name, is_through))
        node = nodes[name]
        traits = op_traits.of(node.op)
        if traits.elementwise or traits.moves_data:
            pending += [(one, is_through or node.op in through) for one in node.input]
    return seen
