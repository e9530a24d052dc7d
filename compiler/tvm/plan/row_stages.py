"""Join stages that work on the same rows: a second part of the plan.

A row is what a reduction over the last dimensions reads for one of its results. Reductions over the
same dimensions of the same rows, and the element-wise stages around them, become one stage if each
reads the others' results at its own row only: then all of it can be done while the row is near.
Only the graph decides, never which ops the tensors come from. Sums across rows, matrix products and
rows of one element are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import Constant, Parameter, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.walk import reachable, unreshaped
from composite.compiler.tvm.plan.stage import Stage

FULL, VALUE, FLAT = "full", "value", "flat"
"""The role of a tensor: an element for each element of the rows; one value a row, with the reduced
dimensions as 1; one value a row, without those dimensions."""


_NEAR = 16
"""How many of the last entries are searched, so that long functions take linear time."""


@dataclass(frozen=True)
class Rows:
    """The dimensions of a group: ``outer`` number its rows, ``reduced`` are within a row."""

    outer: Shape
    reduced: Shape

    @property
    def full(self) -> Shape:
        """All dimensions."""
        return self.outer + self.reduced

    def shape(self, role: str) -> Shape:
        """Return the shape of a tensor in a role."""
        ends = {FULL: self.reduced, VALUE: (1,) * len(self.reduced), FLAT: ()}
        return self.outer + ends[role]


@dataclass(eq=False)
class _Entry:
    """Stages at one place of the order: several only if they share rows."""

    stages: list[Stage]
    rows: Rows | None = None
    roles: dict[Tensor, str] = field(default_factory=dict)
    inputs: set[Tensor] = field(default_factory=set)  # read element for element, made elsewhere

    @property
    def made(self) -> set[Tensor]:
        return {t for stage in self.stages for t in stage.made}


def rows_of(stage: Stage) -> Rows | None:
    """Return the rows that a stage's reduction is over; None if there are none."""
    if stage.reduced:
        cut = len(stage.shape) - stage.reduced
        return Rows(stage.shape[:cut], stage.shape[cut:])
    if stage.anchor is None or not isinstance(stage.anchor.node, Reduce):
        return None
    shape, axes = stage.anchor.node.operand.shape, stage.anchor.node.axes
    cut = len(shape) - len(axes)
    if axes != tuple(range(cut, len(shape))) or 0 in shape or dims.product(shape[cut:]) == 1:
        return None
    return Rows(shape[:cut], shape[cut:])


def join_rows(
    stages: Iterable[Stage], stored: set[Tensor], outputs: Iterable[Tensor]
) -> list[Stage]:
    """Return the stages with those joined that share rows.

    Takes from ``stored`` what is read within one stage alone.
    """
    order = list(stages)
    if not any(rows_of(stage) for stage in order):
        return order
    joiner = _Joiner(stored)
    for stage in order:
        joiner.add(stage)
    return joiner.finish(set(outputs))


class _Joiner:
    def __init__(self, stored: set[Tensor]) -> None:
        self._stored = stored
        self._entries: list[_Entry] = []
        self._read: dict[Stage, set[Tensor]] = {}

    def add(self, stage: Stage) -> None:
        """Put a stage where it belongs: the stages come in an order in which they could run."""
        needed = self._reads(stage)
        last = max((i for i, e in enumerate(self._entries) if e.made & needed), default=-1)
        # All that it reads must be made before the entry that it joins, or in it.
        for i in reversed(range(max(0, last, len(self._entries) - _NEAR), len(self._entries))):
            entry = self._entries[i]
            if entry.rows is not None and self._joins(stage, entry, entry.rows):
                entry.stages.append(stage)
                return
        own = rows_of(stage)
        entry = _Entry([stage], own)
        if own is not None:
            self._joins(stage, entry, own)
            self._take_sources(entry, own)
            self._entries.append(entry)
            return
        # Before the rows that it does not wait for, so that others may still join them.
        later = (i for i, e in enumerate(self._entries) if i > last and e.rows is not None)
        self._entries.insert(next(later, len(self._entries)), entry)

    def finish(self, outputs: set[Tensor]) -> list[Stage]:
        """Return the stages in order, what is read within its own stage alone not stored."""
        readers: dict[Tensor, set[_Entry]] = {}
        for entry in self._entries:
            for tensor in (t for stage in entry.stages for t in self._reads(stage)):
                readers.setdefault(tensor, set()).add(entry)
        result: list[Stage] = []
        for entry in self._entries:
            if entry.rows is None or len(entry.stages) == 1:
                result += entry.stages
                continue
            made = [t for s in entry.stages for t in s.stores]
            kept = [t for t in made if t in outputs or readers.get(t, set()) - {entry}]
            self._stored -= set(made) - set(kept)
            result.append(Stage(entry.rows.full, None, kept, len(entry.rows.reduced)))
        return result

    def _take_sources(self, entry: _Entry, rows: Rows) -> None:
        """Take in element-wise stages on the same elements that nothing else waits for."""
        for source in reversed(self._entries[-_NEAR:]):
            (stage, *more) = source.stages
            if more or stage.anchor is not None or stage.shape != rows.full:
                continue
            after = self._entries[self._entries.index(source) + 1 :]
            if any(source.made & self._reads(s) for e in after for s in e.stages):
                continue
            trial = replace(entry, stages=[stage], roles={}, inputs=set())
            if not self._joins(stage, trial, rows):
                continue
            trial.stages.append(entry.stages[-1])
            if self._joins(entry.stages[-1], trial, rows):
                self._entries.remove(source)
                entry.stages.insert(0, stage)
                entry.roles = {**trial.roles, **entry.roles}
                entry.inputs |= trial.inputs

    def _reads(self, stage: Stage) -> set[Tensor]:
        """Return what a stage reads that other stages make."""
        if stage not in self._read:
            made = stage.made

            def is_read(tensor: Tensor) -> bool:
                return tensor in self._stored and tensor not in made

            found = reachable(made, lambda t: () if is_read(t) else t.node.operands)
            self._read[stage] = {t for t in found if is_read(t)}
        return self._read[stage]

    def _joins(self, stage: Stage, entry: _Entry, rows: Rows) -> bool:
        """Return whether a stage keeps to the rows of an entry; notes its roles there if so."""
        own = rows_of(stage)
        if (own is not None and own != rows) or (own is None and stage.anchor is not None):
            return False
        if any(isinstance(t.node, Constant) for t in stage.stores):
            return False
        roles = _Roles(rows, {**entry.roles}, self._stored - stage.made - entry.made)
        if not roles.visit(stage):
            return False
        alone = entry.stages == [stage]
        if not alone and not roles.met and not roles.inputs & entry.inputs:
            return False
        entry.roles.update(roles.found)
        entry.inputs |= roles.inputs
        return True


class _Roles:
    """Follows a stage from its results to what it reads, with the role in which each is read."""

    def __init__(self, rows: Rows, known: dict[Tensor, str], stored: set[Tensor]) -> None:
        self._rows = rows
        self._known = known
        self._stored = stored
        self.found: dict[Tensor, str] = {}
        self.inputs: set[Tensor] = set()
        self.met = False  # a result of the stages before
        self._needs: dict[Tensor, bool] = {}

    def visit(self, stage: Stage) -> bool:
        """Return whether the stage keeps to the rows."""
        made = [*stage.stores] if stage.anchor is None else [stage.anchor, *stage.stores]
        return all(self._result(t) for t in made)

    def _result(self, tensor: Tensor) -> bool:
        roles = [r for r in (FULL, VALUE, FLAT) if self._rows.shape(r) == tensor.shape]
        return bool(roles) and self._follow(tensor, roles[0])

    def _follow(self, tensor: Tensor, role: str) -> bool:
        known = self._known.get(tensor) or self.found.get(tensor)
        if known is not None:
            self.met |= tensor in self._known
            return known == role
        if self._is_input(tensor):
            if role == FULL:
                self.inputs.add(unreshaped(tensor))
            return True
        if not self._follow_node(tensor, role):
            return False
        self.found[tensor] = role
        return True

    def _is_input(self, tensor: Tensor) -> bool:
        source = unreshaped(tensor)
        return isinstance(source.node, Parameter) or source in self._stored

    def _follow_node(self, tensor: Tensor, role: str) -> bool:
        node, rows = tensor.node, self._rows
        if isinstance(node, Pointwise):
            return all(self._operand(t, role) for t in node.operands)
        if isinstance(node, Reduce):
            axes = tuple(range(len(rows.outer), len(rows.full)))
            is_row = role == FLAT and node.operand.shape == rows.full and node.axes == axes
            return is_row and self._follow(node.operand, FULL)
        if isinstance(node, Reshape):
            other = {VALUE: FLAT, FLAT: VALUE}.get(role)
            if other is not None and node.operand.shape == rows.shape(other):
                return self._follow(node.operand, other)
        return not self._waits(tensor)

    def _operand(self, tensor: Tensor, role: str) -> bool:
        """Follow what an element-wise node of some role reads, by NumPy's broadcasting."""
        rows = self._rows
        roles = [role, VALUE] if role == FULL else [role]
        if not rows.outer and not tensor.shape:
            roles = [FLAT]  # the only row
        for one in roles:
            if tensor.shape == rows.shape(one):
                return self._follow(tensor, one)
        return not self._waits(tensor)

    def _waits(self, tensor: Tensor) -> bool:
        """Return whether it is made of results of rows: it may be read at its own row only."""
        if tensor not in self._needs:

            def is_made_before(t: Tensor) -> bool:
                return t in self._stored and t not in self._known

            found = reachable([tensor], lambda t: () if is_made_before(t) else t.node.operands)
            self._needs[tensor] = any(
                t in self._known or (isinstance(t.node, Reduce) and not is_made_before(t))
                for t in found
            )
        return self._needs[tensor]
