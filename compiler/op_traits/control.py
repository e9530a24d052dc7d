"""Traits of ops that run functions, and of those that are the structure of a graph."""

from __future__ import annotations

from .traits import OpTraits, Runs

ROWS = (
    OpTraits("PartitionedCall", runs=Runs.CALL),
    OpTraits("StatefulPartitionedCall", runs=Runs.CALL),
    OpTraits("Case", runs=Runs.BRANCH),
    OpTraits("If", runs=Runs.BRANCH),
    OpTraits("StatelessCase", runs=Runs.BRANCH),
    OpTraits("StatelessIf", runs=Runs.BRANCH),
    OpTraits("StatelessWhile", runs=Runs.LOOP),
    OpTraits("While", runs=Runs.LOOP),
    # Const and Identity, which are structure as well, are among the ops that move data.
    OpTraits("ControlTrigger", structural=True),
    OpTraits("Enter", structural=True),
    OpTraits("Exit", structural=True),
    OpTraits("HostConst", structural=True),
    OpTraits("LoopCond", structural=True),
    OpTraits("Merge", structural=True, outputs=("output", "value_index")),
    OpTraits("NextIteration", structural=True),
    OpTraits("NoOp", structural=True),
    OpTraits("Placeholder", structural=True),
    OpTraits("PlaceholderV2", structural=True),
    OpTraits("PlaceholderWithDefault", structural=True),
    OpTraits("Switch", structural=True, outputs=("output_false", "output_true")),
    OpTraits("_Arg", structural=True),
    OpTraits("_Retval", structural=True),
)
