"""Merge dimensions of an element-wise stage, or of reductions, so that the innermost loop is long.

Neighbouring dimensions are merged if every tensor either has both or broadcasts along both, and no
view begins or ends within them: a slice or a concatenation along a dimension may still be merged
with whole dimensions that follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import Dim, Shape, product
from composite.compiler.tvm.ir.tensor import Constant, Node, Parameter, Reshape, Tensor
from composite.compiler.tvm.ir.views import Concat, Iota, Slice
from composite.compiler.tvm.ir.walk import over, reachable
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cost import ends

_Pattern = tuple[bool | None, ...]
_Read = tuple[Tensor, Shape]
"""A tensor, and the shape that its reader sees it under."""


def merge_dimensions(stage: Stage, context: Context) -> Stage:
    """Return the stage over as few dimensions as give the same accesses."""
    accesses = _Accesses(stage.stores, stage.shape, stage, context)
    groups = _groups(len(stage.shape), accesses.may_join)
    if not accesses.are_simple or len(groups) == len(stage.shape):
        return stage
    merge = _Merge(stage.shape, groups, stage, context)
    return Stage(merge.shape, None, _merged_stores(stage, merge, context))


def merge_reductions(stage: Stage, context: Context) -> Stage:
    """Return a stage whose anchors are reductions over as few dimensions as give the same accesses.

    Those that are reduced and those that stay remain dimensions of their own.
    """
    nodes = {t: t.node for t in stage.anchors if isinstance(t.node, Reduce)}
    first = next(iter(nodes.values()))
    kept = [i for i in range(first.operand.rank) if i not in first.axes]
    operands = [node.operand for node in nodes.values()]
    sources = _Accesses(operands, first.operand.shape, stage, context)
    results = _Accesses(stage.stores, stage.shape, stage, context)
    if not (sources.are_simple and results.are_simple):
        return stage

    def may_join(i: int, group: Sequence[int]) -> bool:
        if (i in kept) != (group[0] in kept) or not sources.may_join(i, group):
            return False
        return i not in kept or results.may_join(kept.index(i), [kept.index(j) for j in group])

    groups = _groups(first.operand.rank, may_join)
    if len(groups) == first.operand.rank:
        return stage
    of_sources = _Merge(first.operand.shape, groups, stage, context)
    axes = tuple(i for i, group in enumerate(groups) if group[0] not in kept)
    own = [[kept.index(i) for i in group] for group in groups if group[0] in kept]
    shape = _grouped(stage.shape, own)
    anchors = {
        t: Tensor(shape, t.dtype, Reduce(of_sources.merged(n.operand), axes, n.combine))
        for t, n in nodes.items()
    }
    of_results = _Merge(stage.shape, own, stage, context, anchors)
    stores = _merged_stores(stage, of_results, context)
    anchor, *beside = anchors.values()
    return Stage(shape, anchor, stores, beside=tuple(beside))


def merge_last(tensors: Sequence[Tensor], stage: Stage, context: Context) -> list[Tensor] | None:
    """Return operands of a stage's anchors with their last two dimensions as one.

    None if not every tensor that they are made of has both or neither.
    """
    shape = tensors[0].shape
    accesses, last = _Accesses(tensors, shape, stage, context), len(shape) - 1
    if not accesses.are_simple or not accesses.may_join(last, [last - 1]):
        return None
    groups = [*([i] for i in range(last - 1)), [last - 1, last]]
    merge = _Merge(shape, groups, stage, context)
    return [merge.merged(tensor) for tensor in tensors]


def _groups(rank: int, may_join: Callable[[int, Sequence[int]], bool]) -> list[list[int]]:
    groups: list[list[int]] = []
    for i in range(rank):
        if groups and may_join(i, groups[-1]):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _merged_stores(stage: Stage, merge: _Merge, context: Context) -> list[Tensor]:
    stores = [merge.merged(tensor) for tensor in stage.stores]
    for tensor, merged in zip(stage.stores, stores, strict=True):
        context.space.storages[merged] = context.space.storages[tensor]
    return stores


def _grouped(shape: Shape, groups: Sequence[Sequence[int]]) -> Shape:
    return tuple(product(shape[i] for i in group) for group in groups)


def dimension_groups(shape: Shape, patterns: set[tuple[bool, ...]]) -> list[list[int]]:
    """Return runs of dimensions that can be one, as every tensor has or lacks them alike.

    ``patterns`` holds for each tensor which of the dimensions it has, with a size other than 1.
    """
    groups: list[list[int]] = []
    last = -1  # the last dimension of the last group that is not 1
    for i, dim in enumerate(shape):
        if groups and (dim == 1 or last < 0 or all(p[i] == p[last] for p in patterns)):
            groups[-1].append(i)
        else:
            groups.append([i])
        last = i if dim != 1 else last
    return groups


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


class _Accesses:
    """Which dimensions each tensor really has, and at which a view begins something new.

    A pattern holds for each dimension whether the tensor has it (False: it is repeated along it),
    or None if that makes no difference because all that is around it has 1 there.
    """

    def __init__(
        self, roots: Iterable[Tensor], shape: Shape, stage: Stage, context: Context
    ) -> None:
        self._stage = stage
        self._context = context
        self._rank = len(shape)
        self._patterns: set[_Pattern] = set()
        self._starts: set[int] = set()
        self.are_simple = True  # whether merged dimensions can express all that is read
        reachable([(tensor, shape) for tensor in roots], self._look)

    def may_join(self, i: int, group: Sequence[int]) -> bool:
        """Return whether a dimension can be one with those before it."""
        return i not in self._starts and all(self._agree(i, j) for j in group)

    def _agree(self, i: int, j: int) -> bool:
        """Return whether no tensor has one of two dimensions alone."""
        return all(p[i] is None or p[j] is None or p[i] == p[j] for p in self._patterns)

    def _look(self, read: _Read) -> list[_Read]:
        """Note how a tensor is read; return what is read of its operands."""
        tensor, frame = read
        node = tensor.node
        if tensor.rank > self._rank:
            self.are_simple = False
        if not self.are_simple:
            return []
        shape = _padded(tensor.shape, self._rank)
        self._patterns.add(
            tuple(None if f == 1 else d != 1 for d, f in zip(shape, frame, strict=True))
        )
        if ends(tensor, self._stage, self._context) or isinstance(node, Constant):
            return []
        if node.is_element_wise:
            return [(t, frame) for t in node.operands]
        if isinstance(node, Slice | Concat | Iota):
            self._note_starts(tensor, node)
            return [(t, _padded(t.shape, self._rank)) for t in node.operands]
        self.are_simple = self._is_view_of_buffer(node)
        return []

    def _is_view_of_buffer(self, node: Node) -> bool:
        if not isinstance(node, Reshape):
            return False
        return self._context.space.storage(node.operand) is not None

    def _note_starts(self, tensor: Tensor, node: Slice | Concat | Iota) -> None:
        first = self._rank - tensor.rank
        if not isinstance(node, Slice):
            self._starts.add(first + node.axis)
            if isinstance(node, Iota):
                self._starts.add(first + node.axis + 1)
            return
        cut = zip(node.start, node.step, node.operand.shape, tensor.shape, strict=True)
        for i, (start, step, whole, size) in enumerate(cut):
            if start != 0 or step != 1 or whole != size:
                self._starts.add(first + i)
            if step != 1:
                self._starts.add(first + i + 1)


class _Merge:
    """Rebuild tensors under merged dimensions; buffers stay where they are.

    ``known`` holds what takes the places of some of them.
    """

    def __init__(
        self,
        shape: Shape,
        groups: Sequence[Sequence[int]],
        stage: Stage,
        context: Context,
        known: Mapping[Tensor, Tensor] | None = None,
    ) -> None:
        self._rank = len(shape)
        self._groups = groups
        self._stage = stage
        self._context = context
        self._made: dict[Tensor, Tensor] = dict(known or {})
        self.shape = self._shape(shape)

    def merged(self, tensor: Tensor) -> Tensor:
        """Return the tensor under the merged dimensions."""
        if tensor not in self._made:
            self._made[tensor] = Tensor(self._shape(tensor.shape), tensor.dtype, self._node(tensor))
        return self._made[tensor]

    def _shape(self, shape: Shape) -> Shape:
        return _grouped(_padded(shape, self._rank), self._groups)

    def _node(self, tensor: Tensor) -> Node:
        node = tensor.node
        if ends(tensor, self._stage, self._context) or isinstance(node, Parameter):
            return Reshape(tensor)
        if isinstance(node, Constant):
            return node
        if isinstance(node, Reshape):
            return Reshape(node.operand)
        made = {t: self.merged(t) for t in node.operands}
        if isinstance(node, Concat):
            return Concat(tuple(made[t] for t in node.operands), self._group_of(tensor, node.axis))
        if isinstance(node, Iota):
            return Iota(self._group_of(tensor, node.axis))
        if isinstance(node, Slice):
            return self._slice(node, made[node.operand])
        return over(node, made)  # element-wise: the same under any dimensions

    def _group_of(self, tensor: Tensor, axis: int) -> int:
        place = self._rank - tensor.rank + axis
        return next(g for g, group in enumerate(self._groups) if place in group)

    def _slice(self, node: Slice, operand: Tensor) -> Slice:
        """Return the slice where only the first dimension of a group is cut."""
        missing = self._rank - node.operand.rank
        shape = _padded(node.operand.shape, self._rank)
        starts: list[Dim] = [*([0] * missing), *node.start]
        steps = [*([1] * missing), *node.step]
        start = tuple(starts[g[0]] * product(shape[i] for i in g[1:]) for g in self._groups)
        return Slice(operand, start, tuple(steps[g[0]] for g in self._groups))
