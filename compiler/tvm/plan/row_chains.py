"""Chains of stages: a row of each is made of the same row of those before it, and of nothing else.

The scores of attention, their softmax and its product with the values are a chain, and so are a
norm and the dense layer behind it. A task can then take a block of rows through all of them, and
what they hand on need not be stored whole. Only the graph decides what may be a chain; which of
them are written as one is the strategies' part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Shape, symbol
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import reachable
from composite.compiler.tvm.plan.plan import Plan
from composite.compiler.tvm.plan.row_block import RowBlock
from composite.compiler.tvm.plan.row_stages import rows_of
from composite.compiler.tvm.plan.stage import Stage


@dataclass
class _Chain:
    """A chain that may still grow."""

    parts: list[Stage]
    block: RowBlock
    outer: Shape

    @classmethod
    def begin(cls, stage: Stage, plan: Plan) -> _Chain | None:
        """Return the chain of a stage alone; None if it has no rows."""
        rows = rows_of(stage)
        outer = stage.shape[:-1] if rows is None else rows.outer
        starts = tuple(symbol(f"at{i}") for i in range(len(outer)))
        block = RowBlock(outer, starts, symbol("count"), plan.stored)
        return cls([stage], block, outer) if outer and block.add(stage) else None

    def takes(self, stage: Stage) -> bool:
        """Add a stage, if it can be."""
        if self.block.add(stage) is None:
            return False
        self.parts.append(stage)
        return True

    def stage(self, plan: Plan) -> Stage | None:
        """Return it as one stage; None if it has no product, or is one stage already."""
        products = [s for s in self.parts if s.anchor and isinstance(s.anchor.node, MatMul)]
        if len(self.parts) == 1 or not products:
            return None
        return Stage(self.outer, None, _read_elsewhere(self.parts, plan), parts=tuple(self.parts))


def row_chains(
    plan: Plan, may_join: Callable[[Stage], bool], pays: Callable[[Stage], bool]
) -> list[Stage]:
    """Return the stages of a plan, a chain in place of those that are in one.

    Args:
        plan: The stages.
        may_join: Whether a stage may be in a chain.
        pays: Whether a chain is better than its parts.
    """
    joined: list[Stage] = []
    for chain in _runs(plan, may_join):
        if isinstance(chain, Stage):
            joined.append(chain)
            continue
        stage = chain.stage(plan)
        joined += [stage] if stage is not None and pays(stage) else chain.parts
    return joined


def _runs(plan: Plan, may_join: Callable[[Stage], bool]) -> list[_Chain | Stage]:
    found: list[_Chain | Stage] = []
    for stage in plan.stages:
        if not may_join(stage):
            found.append(stage)
            continue
        last = found[-1] if found else None
        if not (isinstance(last, _Chain) and last.takes(stage)):
            found.append(_Chain.begin(stage, plan) or stage)
    return found


def _read_elsewhere(parts: Sequence[Stage], plan: Plan) -> list[Tensor]:
    """Return what a chain stores that is a result, or that other stages of the plan read."""
    stores = [t for stage in parts for t in stage.stores]
    own = set(stores)
    others = [t for stage in plan.stages if stage not in parts for t in stage.made]
    needed = {*plan.outputs, *reachable(others, lambda t: () if t in own else t.node.operands)}
    return [t for t in stores if t in needed]
