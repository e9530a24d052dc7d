"""Strategies are asked in the order of the context's list; the first that matches writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composite.compiler.tvm import NotCovered, Target
from composite.compiler.tvm.codegen.access import Space
from composite.compiler.tvm.ir.graph import Function, constant, pointwise
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy import strategies_of
from composite.compiler.tvm.strategy.context import Context, Strategy
from composite.compiler.tvm.tir.block import Block

TVM = Path(__file__).parents[4] / "compiler" / "tvm"


class Taking:
    """A strategy that notes what it is asked, and takes all or nothing."""

    def __init__(self, name: str, asked: list[str], *, takes: bool) -> None:
        self.name = name
        self._asked = asked
        self._takes = takes

    def match(self, stage: Stage, context: Context) -> Any:
        self._asked.append(self.name)
        return self if self._takes else None

    def write(self) -> None:
        self._asked.append(f"{self.name} writes")


def context_of(*strategies: Strategy) -> tuple[Context, Stage]:
    one = constant(np.float32(1.0).reshape(()), "float32")
    x = pointwise("Neg", lambda _, a: -a, (Tensor((4, 2), "float32", one.node),), "float32")
    plan = make_plan(Function((), (x,)))
    (stage,) = plan.stages
    return Context(
        Block(), Space({}, {}), plan, Target.of("x86-64-v3", 1), tuple(strategies)
    ), stage


def test_the_first_strategy_that_matches_writes_the_stage() -> None:
    asked: list[str] = []
    some = [Taking("a", asked, takes=False), Taking("b", asked, takes=True)]
    context, stage = context_of(*some, Taking("c", asked, takes=True))
    strategy, writer = context.match(stage)
    assert strategy.name == "b"
    assert asked == ["a", "b"]
    writer.write()
    assert asked == ["a", "b", "b writes"]


def test_a_stage_that_no_strategy_takes_is_not_covered() -> None:
    context, stage = context_of(Taking("a", [], takes=False))
    with pytest.raises(NotCovered, match=r"no strategy writes element-wise work of shape \[4,2\]"):
        context.match(stage)


def test_matching_writes_nothing() -> None:
    context, stage = context_of(*strategies_of("cpu"))
    strategy, _ = context.match(stage)
    assert strategy.name == "elementwise"
    assert context.block.depth == 1
    assert not context.choices.asked


def test_a_target_names_the_device_whose_strategies_write() -> None:
    assert Target.of("x86-64-v3", 1).device == "cpu"
    names = [strategy.name for strategy in strategies_of("cpu")]
    assert names[0] == "recurrence"
    assert names[-1] == "elementwise"
    assert len(set(names)) == len(names)


def test_only_the_room_of_a_device_names_its_strategies() -> None:
    naming = re.compile(r"^\s*(?:from|import) .*\.strategy\.cpu", re.MULTILINE)
    outside = [p for p in TVM.rglob("*.py") if TVM / "strategy" / "cpu" not in p.parents]
    assert outside
    assert not [p.name for p in outside if naming.search(p.read_text())]
