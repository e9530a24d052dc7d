"""Inputs that a root or a logarithm reads in a sum, as an optimizer's second moment.

Where such a sum of both signs nearly cancels, roundings decide whether there is a number at all,
and which: no check could tell a kernel that is wrong there.

Not for: what is drawn instead (adversarial.py).
"""

from __future__ import annotations

from composite.compiler import op_traits
from composite.ops.functions import Body

_ROOTS = ("Sqrt", "Rsqrt", "Log", "Pow")
_SUMS = ("AddV2", "Add", "AddN", "Sub")


def under_roots(body: Body) -> frozenset[int]:
    """The inputs that such an op reads through element-wise ops, one of them a sum."""
    nodes = {node.name: node for node in body.graph_def.node}
    pending = [(node.input[0], False) for node in nodes.values() if node.op in _ROOTS]
    seen: set[tuple[str, bool]] = set()
    found: set[int] = set()
    while pending:
        reference, is_summed = pending.pop()
        name = reference.partition(":")[0]
        if (name, is_summed) in seen or reference.startswith("^"):
            continue
        seen.add((name, is_summed))
        node = nodes[name]
        if name in body.inputs:
            found |= {body.inputs.index(name)} if is_summed else set()
            continue
        traits = op_traits.of(node.op)
        if traits.elementwise or traits.moves_data:
            pending += [(one, is_summed or node.op in _SUMS) for one in node.input]
    return frozenset(found)
