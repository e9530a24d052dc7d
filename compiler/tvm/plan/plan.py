"""Cut a lowered function into stages: what is computed in one set of loops.

A stage has at most one anchor (a matrix product or a sum) and stores tensors of one shape: the
anchor's own, or what is made of it element by element. Everything between stored tensors is
computed where it is read. Stages that work on the same rows are then joined (:mod:`.row_stages`).
The plan says nothing of loops; that is the strategies' part.
"""

from __future__ import annotations

from dataclasses import dataclass

from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.graph import Function, is_squeeze, is_table, pointwise
from composite.compiler.tvm.ir.loop import Loop, LoopResult, is_one_value
from composite.compiler.tvm.ir.tensor import Parameter, Pointwise, Reshape, Tensor, Transpose
from composite.compiler.tvm.ir.views import Check, Concat, DynamicSlice, Gather, Slice
from composite.compiler.tvm.ir.walk import reachable, topological, unreshaped
from composite.compiler.tvm.passes.pipeline import FUNCTION_PASSES, run
from composite.compiler.tvm.plan.row_stages import join_rows
from composite.compiler.tvm.plan.stage import Stage

_RECOMPUTE_COST = 8
"""A value that costs at least this much is stored before a larger shape reads it several times."""

_GATHER_COST = 8
"""Of loading a vector whose elements are not next to each other: an element at a time."""

_NESTED_JOINS = 4
"""Nested concatenations that are computed where they are read: each doubles the code."""


@dataclass(frozen=True)
class Plan:
    """Stages in the order in which they run.

    ``stored`` tensors have a buffer. Output ``i`` of the function is the buffer of ``outputs[i]``:
    the tensor itself, or what it is only another shape of.
    """

    function: Function
    stages: tuple[Stage, ...]
    stored: frozenset[Tensor]
    outputs: tuple[Tensor, ...]


def make_plan(function: Function) -> Plan:
    """Return the stages of a function."""
    function = run(FUNCTION_PASSES, function)
    return _Planner(function, _output_buffers(function.outputs)).plan()


def _output_buffers(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return for each output a tensor to compute into it, all of them different.

    A reshaped result is computed under its own shape; what has a buffer already is copied.
    """
    chosen: list[Tensor] = []
    for output in outputs:
        target = unreshaped(output)
        if isinstance(target.node, Parameter | Transpose) or target in {*chosen, *outputs}:
            target = output
        if isinstance(target.node, Parameter) or target in chosen:
            target = pointwise("Identity", lambda _, x: x, (target,), target.dtype, cost=0)
        chosen.append(target)
    return tuple(chosen)


class _Planner:
    def __init__(self, function: Function, outputs: tuple[Tensor, ...]) -> None:
        self._function = function
        self._outputs = outputs
        self._order = topological(outputs)
        self._position = {t: i for i, t in enumerate(self._order)}
        self._last_anchor: dict[Tensor, Tensor | None] = {}
        self._depends: dict[Tensor, frozenset[Tensor]] = {}
        self._anchors = {t for t in self._order if t.node.is_anchor}
        self._stored = self._choose_stored()

    def _choose_stored(self) -> set[Tensor]:
        stored = set(self._outputs)
        costs: dict[Tensor, int] = {}
        repeated = _read_again_elsewhere(self._order)
        failing: set[Tensor] = set()
        joins: dict[Tensor, int] = {}
        for tensor in self._order:
            if is_table(tensor) or isinstance(tensor.node, LoopResult):
                stored.add(tensor)
            for operand in tensor.node.operands:
                if operand in repeated and costs[operand] >= _RECOMPUTE_COST:
                    stored.add(operand)
                if isinstance(tensor.node, Concat) and joins[operand] >= _NESTED_JOINS:
                    stored.add(operand)
                # Each element is computed, so that the call fails wherever TensorFlow's would.
                if operand in failing and tensor.node.selects:
                    stored.add(operand)
                if tensor.node.reads_memory:
                    root = _root(operand)
                    given = isinstance(root.node, Parameter)
                    if not given and not (isinstance(tensor.node, Loop) and is_one_value(root)):
                        stored.add(root)
                elif costs[operand] >= _RECOMPUTE_COST and _is_spread(operand, tensor):
                    stored.add(operand)
            costs[tensor] = _cost(tensor, stored, costs)
            inlined = {t for t in tensor.node.operands if t not in stored}
            below = max((joins[t] for t in inlined), default=0)
            joins[tensor] = below + isinstance(tensor.node, Concat)
            if isinstance(tensor.node, Check) or inlined & failing:
                failing.add(tensor)
        return stored

    def plan(self) -> Plan:
        for tensor in self._order:
            self._summarize(tensor)
        fused = self._fuse_epilogues()
        stages = join_rows(self._build_stages(fused), self._stored, self._outputs)
        return Plan(self._function, tuple(stages), frozenset(self._stored), self._outputs)

    def _summarize(self, tensor: Tensor) -> None:
        """Note the anchors that a tensor depends on, directly or through stored tensors."""
        anchors: set[Tensor] = set()
        for operand in tensor.node.operands:
            anchors |= self._depends[operand]
            if operand.node.is_anchor:
                anchors.add(operand)
        self._depends[tensor] = frozenset(anchors)
        self._last_anchor[tensor] = max(anchors, key=self._position.__getitem__, default=None)

    def _fuse_epilogues(self) -> dict[Tensor, list[Tensor]]:
        """Map each anchor to the stored tensors computed in its loops; store it if others read it.

        A tensor joins the last anchor that it depends on, if it reads it element for element. All
        else that it reads is then stored by earlier stages.
        """
        fused: dict[Tensor, list[Tensor]] = {t: [] for t in self._order if t.node.is_anchor}
        for tensor in self._order:
            anchor = self._last_anchor[tensor]
            if tensor not in self._stored or tensor.node.is_anchor or anchor is None:
                continue
            if isinstance(tensor.node, LoopResult):
                fused[tensor.node.loop].append(tensor)
                continue
            if not anchor.node.takes_epilogue:
                continue
            members = {anchor, *fused[anchor]}
            if self._reads_in_place(tensor, members) and self._rest_is_earlier(tensor, members):
                fused[anchor].append(tensor)
        for anchor, joined in fused.items():
            if self._needed_elsewhere(anchor, joined):
                self._stored.add(anchor)
        return fused

    def _reads_in_place(self, tensor: Tensor, members: set[Tensor]) -> bool:
        """Return whether ``tensor`` reads the members only at the element being computed."""
        inlined = self._inlined(tensor, members)
        if not inlined & members:
            return False
        for reader in inlined - members:
            if reader is not tensor and (reader in self._stored or reader in self._anchors):
                continue
            for operand in reader.node.operands:
                if not (self._inlined(operand, members) & members):
                    continue
                if not isinstance(reader.node, Pointwise) or operand.shape != tensor.shape:
                    return False
        return all(m.shape == tensor.shape for m in inlined & members)

    def _rest_is_earlier(self, tensor: Tensor, members: set[Tensor]) -> bool:
        """Return whether all other stored tensors it reads are made without these anchors."""
        anchor = self._last_anchor[tensor]
        leaves = self._inlined(tensor, members) - members - {tensor}
        return all(anchor not in self._depends[t] for t in leaves if t in self._stored)

    def _inlined(self, tensor: Tensor, members: set[Tensor]) -> set[Tensor]:
        """Return what is computed or read in the loops of ``tensor``: up to stored tensors."""

        def below(current: Tensor) -> tuple[Tensor, ...]:
            ends = current is not tensor and (current in self._stored or current.node.is_anchor)
            return () if ends or current in members else current.node.operands

        return set(reachable([tensor], below))

    def _needed_elsewhere(self, anchor: Tensor, members: list[Tensor]) -> bool:
        if anchor in self._stored or not members:
            return True
        inside = {anchor, *members}
        for tensor in self._stored - inside:
            if anchor in self._inlined(tensor, set()):
                return True
        return any(
            anchor in self._inlined(t, set())
            for t in self._order
            if t.node.is_anchor and t is not anchor
        )

    def _build_stages(self, fused: dict[Tensor, list[Tensor]]) -> list[Stage]:
        """Order the stages: by the last anchor needed, the anchor's own stage first."""
        taken = {t for members in fused.values() for t in members}
        anchored: list[tuple[int, Stage]] = []
        for anchor, members in fused.items():
            stores = ([anchor] if anchor in self._stored else []) + members
            anchored.append((self._position[anchor], Stage(anchor.shape, anchor, stores)))
        loose: dict[int, list[Stage]] = {}
        for tensor in self._order:
            if tensor not in self._stored or tensor in taken or tensor.node.is_anchor:
                continue
            last = self._last_anchor[tensor]
            group = loose.setdefault(-1 if last is None else self._position[last], [])
            self._join_or_append(group, tensor)
        stages = loose.get(-1, [])
        for position, stage in anchored:
            stages = [*stages, stage, *loose.get(position, [])]
        return stages

    def _join_or_append(self, group: list[Stage], tensor: Tensor) -> None:
        """Put an element-wise tensor into the latest stage of its shape that it may share."""
        shares = group and group[-1].shape == tensor.shape
        if shares and not is_table(tensor) and not is_table(group[-1].stores[0]):
            members = set(group[-1].stores)
            reads = self._inlined(tensor, members) & members
            if not reads or self._reads_in_place(tensor, members):
                group[-1].stores.append(tensor)
                return
        group.append(Stage(tensor.shape, None, [tensor]))


def _root(tensor: Tensor) -> Tensor:
    """Return what a matrix operand is a view of, as far as strides can say it.

    Transposes and slices of reshapes of a buffer have strides; a reshape of those has them only if
    it adds or drops dimensions of 1.
    """
    node = tensor.node
    if isinstance(node, Transpose | Slice):
        return _root(node.operand)
    if not isinstance(node, Reshape):
        return tensor
    if is_squeeze(tensor.shape, node.operand.shape):
        return _root(node.operand)
    source = unreshaped(tensor)
    return tensor if isinstance(source.node, Transpose | Slice) else source


def _is_spread(operand: Tensor, reader: Tensor) -> bool:
    """Return whether each element is read many times."""
    own, read = dims.product(operand.shape), dims.product(reader.shape)
    if isinstance(reader.node, Gather) and isinstance(own, int) and isinstance(read, int):
        return read > own
    if isinstance(reader.node, DynamicSlice):
        return operand is not reader.node.operand
    return isinstance(reader.node, Pointwise | Gather) and own != read


def _is_apart(tensor: Tensor) -> bool:
    """Return whether elements along the last dimension are places of one that was last before."""
    node = tensor.node
    if not isinstance(node, Reshape) or not isinstance(node.operand.node, Slice):
        return False
    part, whole = node.operand.shape, node.operand.node.operand.shape
    return bool(tensor.shape) and tensor.shape[-1] != 1 == part[-1] != whole[-1]


def _read_again_elsewhere(order: list[Tensor]) -> set[Tensor]:
    """Return what views read such that elements are computed more than once."""
    sizes: dict[Tensor, dims.Dim] = {}
    viewed: set[Tensor] = set()
    for tensor in order:
        node = tensor.node
        for operand in node.operands:
            read = tensor if isinstance(node, Slice | DynamicSlice) else operand
            sizes[operand] = sizes.get(operand, 0) + dims.product(read.shape)
        if isinstance(node, Slice | DynamicSlice | Concat):
            viewed.update(node.operands)
    return {t for t in viewed if _is_more(sizes[t], dims.product(t.shape))}


def _is_more(read: dims.Dim, own: dims.Dim) -> bool:
    return read > own if isinstance(read, int) and isinstance(own, int) else read != own


def _cost(tensor: Tensor, stored: set[Tensor], costs: dict[Tensor, int]) -> int:
    """Return the cost of computing one element from what is stored or given."""
    if tensor.node.is_anchor:
        return 0
    own = _GATHER_COST if _is_apart(tensor) else tensor.node.cost
    return own + sum(costs[t] for t in set(tensor.node.operands) if t not in stored)
