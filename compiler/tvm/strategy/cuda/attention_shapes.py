"""Which stages are an attention that one launch computes, and how it is cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.plan.running_softmax import (
    RunningSoftmax,
    join_softmax,
    running_softmax,
)
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cuda.fragments import Numbers
from composite.compiler.tvm.strategy.cuda.staged_factor import Factor, factors_of

_MOST_COLUMNS = 128
"""Elements of a query or a value, for which the registers suffice."""


def joined_stages(context: Context) -> list[Stage]:
    """Return the stages of a plan, those of an attention that can be written as one."""
    joined: list[Stage] = []
    for stage in join_softmax(context.plan):
        fits = not stage.parts or Shapes.of(stage, context) is not None
        joined += [stage] if fits else stage.parts
    return joined


@dataclass(frozen=True)
class Shapes:
    """The tensors of an attention, and how they are cut."""

    found: RunningSoftmax
    queries: Factor
    keys: Factor
    values: Factor
    first: Numbers
    second: Numbers
    depth: int  # elements of a query, in whole fragments
    width: int  # elements of a value, likewise

    @classmethod
    def of(cls, stage: Stage, context: Context) -> Shapes | None:
        """Return them; None if tensor cores, registers or shared memory do not allow it."""
        found = running_softmax(stage.parts, context.plan.stored)
        if (
            found is None
            or 0 in found.result.shape
            or compute_dtype(found.logits.dtype) != "float32"
        ):
            return None
        first, second = found.scores.node, found.result.node
        if not (isinstance(first, MatMul) and isinstance(second, MatMul)):
            return None
        numbers = [
            Numbers.of(t, context, node.a, node.b)
            for t, node in ((found.scores, first), (found.result, second))
        ]
        (queries, keys), (_, values) = factors_of(first), factors_of(second)
        sizes = queries.depth, values.size
        if numbers[0] is None or numbers[1] is None:
            return None
        if not all(isinstance(d, int) and 0 < d <= _MOST_COLUMNS for d in sizes):
            return None
        depth, width = (-(-int(d) // 16) * 16 for d in sizes if isinstance(d, int))
        return cls(found, queries, keys, values, numbers[0], numbers[1], depth, width)


@dataclass(frozen=True)
class AttentionWriter:
    """Writes one launch, which is made then: what is chosen for it is chosen once."""

    launch: Callable[[Stage, Shapes, Context], Writer]
    stage: Stage
    shapes: Shapes
    context: Context

    def write(self) -> None:
        """Write it."""
        self.launch(self.stage.parts[-1], self.shapes, self.context).write()
