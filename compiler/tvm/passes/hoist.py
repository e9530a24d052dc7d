"""Take products out of a loop that do not depend on what its trips carry.

The product of a sequence's element with the weights is made for all trips in one product before
the loop: a product of one row a trip becomes one of many rows. Not for other work that the trips
could share: it is cheaper than the memory it would go through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composite.compiler.tvm.ir import graph, views
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.loop import Trip
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import rewrite
from composite.compiler.tvm.passes.lift import lift


def hoist_products(trip: Trip) -> Trip:
    """Return the trip with slices of products that are made before the loop."""
    kinds = trip.varies()

    def rule(tensor: Tensor, _: Mapping[Tensor, Tensor]) -> Tensor | None:
        if not isinstance(tensor.node, MatMul) or kinds[tensor] != "counted":
            return None
        lifted = lift(tensor, kinds, trip.counter, trip.trips)
        if lifted is None:
            return None
        one = views.select(lifted.tensor, lifted.axis, lifted.at)
        return graph.reshape(one, tensor.shape)

    made = rewrite(trip.outputs, rule)
    return replace(trip, outputs=tuple(made[t] for t in trip.outputs))
