"""Close a loop: its trips read what lies outside through leaves, and through nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from composite.compiler.tvm.ir.loop import Trip, is_one_value, leaf
from composite.compiler.tvm.ir.tensor import Parameter, Tensor
from composite.compiler.tvm.ir.walk import reachable, rewrite


def close_loop(trip: Trip) -> Trip:
    """Return the trip with a leaf for each tensor outside that it reads.

    Views of such a tensor stay inside: strategies see by them how the tensor lies in memory.
    """
    outside = _roots(trip.outputs, trip.varies())
    leaves: dict[Tensor, Tensor] = {}

    def rule(tensor: Tensor, _: Mapping[Tensor, Tensor]) -> Tensor | None:
        if tensor not in outside:
            return None
        leaves[tensor] = leaf(tensor)
        return leaves[tensor]

    made = rewrite(trip.outputs, rule)
    outputs = tuple(made[t] for t in trip.outputs)
    return replace(trip, outputs=outputs, captured=tuple(leaves), leaves=tuple(leaves.values()))


def _roots(made: Sequence[Tensor], kinds: Mapping[Tensor, Any]) -> set[Tensor]:
    """Return what is stored outside for the trips: what their views of outside are views of."""
    readers = [t for t in kinds if kinds[t]]
    roots = [o for t in readers for o in t.node.operands if not kinds[o]]
    roots += [t for t in made if not kinds[t]]

    def below(tensor: Tensor) -> tuple[Tensor, ...]:
        return tensor.node.operands if tensor.node.is_strided_view else ()

    return {
        t
        for t in reachable(roots, below)
        if not (t.node.is_strided_view or isinstance(t.node, Parameter) or is_one_value(t))
    }
