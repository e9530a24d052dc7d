"""Between which barriers a team's accesses lie, and what a function stores, found in one pass.

Two accesses of a team are in one phase if no barrier is between them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx
from tvm.tirx import stmt as tir_stmt

LAUNCH = "pragma_parallel_launch_point"
BARRIER = "pragma_parallel_barrier_when_finish"


@dataclass
class Region:
    """A parallel loop, or a team with all of its phases.

    ``stored`` holds for each phase the buffers that are stored to in it, ``misplaced`` says what is
    wrong with the barriers, ``in_task`` is whether the statement looked at is one task's.
    """

    stored: list[set[str]] = field(default_factory=lambda: [set()])
    misplaced: str = ""
    in_task: bool = False


@dataclass
class Survey:
    """How many statements store to each buffer, and the regions in the order of the text."""

    stores: Counter[str] = field(default_factory=Counter)
    regions: list[Region] = field(default_factory=list)


def survey(body: Any) -> Survey:
    """Look through a function."""
    found = Survey()
    _visit(body, found, None, guarded=False)
    return found


def _visit(s: Any, found: Survey, region: Region | None, *, guarded: bool) -> None:
    kind = type(s)
    if kind is tirx.SeqStmt:
        for one in s.seq:
            _visit(one, found, region, guarded=guarded)
    elif kind is tir_stmt.BufferStore:
        found.stores[s.buffer.name] += 1
        if region is not None:
            region.stored[-1].add(s.buffer.name)
    elif kind is tirx.IfThenElse:
        _visit(s.then_case, found, region, guarded=region is not None)
        if s.else_case is not None:
            _visit(s.else_case, found, region, guarded=region is not None)
    elif kind is tirx.For:
        _visit_loop(s, found, region, guarded=guarded)
    elif kind is tirx.AttrStmt:
        _visit_attribute(s, found, region, guarded=guarded)


def _visit_loop(s: Any, found: Survey, region: Region | None, *, guarded: bool) -> None:
    if region is None and s.kind == tir_stmt.ForKind.PARALLEL:
        region = Region(in_task=True)
        found.regions.append(region)
        _visit(s.body, found, region, guarded=False)
        return
    in_task = s.kind == tir_stmt.ForKind.PARALLEL
    if in_task and region is not None:
        region.in_task = True
    _visit(s.body, found, region, guarded=guarded)
    if in_task and region is not None:
        region.in_task = False
    elif region is not None and not region.in_task and region.stored[-1]:
        region.misplaced = "no barrier is at the end of a trip"


def _visit_attribute(s: Any, found: Survey, region: Region | None, *, guarded: bool) -> None:
    if s.attr_key == LAUNCH:
        region = Region()
        found.regions.append(region)
        _visit(s.body, found, region, guarded=False)
        return
    _visit(s.body, found, region, guarded=guarded)
    if s.attr_key == BARRIER and region is not None:
        region.stored.append(set())
        if guarded:
            region.misplaced = "a barrier is behind a condition"
