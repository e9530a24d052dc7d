"""Merge dimensions of an element-wise stage, so that its innermost loop is long.

Neighbouring dimensions are merged if every tensor either has both or broadcasts along both, and no
view begins or ends within them: a slice or a concatenation along a dimension may still be merged
with whole dimensions that follow it.
"""

from __future__ import annotations

from composite.compiler.tvm.ir.dims import Dim, Shape, product
from composite.compiler.tvm.ir.tensor import Constant, Node, Parameter, Reshape, Tensor
from composite.compiler.tvm.ir.views import Concat, Iota, Slice
from composite.compiler.tvm.ir.walk import over, reachable
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cost import is_read

_Pattern = tuple[bool | None, ...]
_Read = tuple[Tensor, Shape]
"""A tensor, and the shape that its reader sees it under."""


def merge_dimensions(stage: Stage, context: Context) -> Stage:
    """Return the stage over as few dimensions as give the same accesses."""
    if len(stage.shape) < 2:
        return stage
    accesses = _Accesses(stage, context)
    if not accesses.are_simple():
        return stage
    groups: list[list[int]] = []
    for i in range(len(stage.shape)):
        if groups and all(accesses.agree(i, j) for j in groups[-1]) and i not in accesses.starts:
            groups[-1].append(i)
        else:
            groups.append([i])
    if len(groups) == len(stage.shape):
        return stage
    return _Merge(stage, context, groups).stage()


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

    def __init__(self, stage: Stage, context: Context) -> None:
        self._stage = stage
        self._context = context
        self._rank = len(stage.shape)
        self._patterns: set[_Pattern] = set()
        self._simple = True
        self.starts: set[int] = set()

    def agree(self, i: int, j: int) -> bool:
        """Return whether no tensor has one of two dimensions alone."""
        return all(p[i] is None or p[j] is None or p[i] == p[j] for p in self._patterns)

    def are_simple(self) -> bool:
        """Look at all that is read; return whether merged dimensions can express it."""
        reachable([(tensor, self._stage.shape) for tensor in self._stage.stores], self._look)
        return self._simple

    def _look(self, read: _Read) -> list[_Read]:
        """Note how a tensor is read; return what is read of its operands."""
        tensor, frame = read
        node = tensor.node
        if tensor.rank > self._rank:
            self._simple = False
        if not self._simple:
            return []
        shape = _padded(tensor.shape, self._rank)
        self._patterns.add(
            tuple(None if f == 1 else d != 1 for d, f in zip(shape, frame, strict=True))
        )
        if is_read(tensor, self._stage, self._context) or isinstance(node, Constant):
            return []
        if node.is_element_wise:
            return [(t, frame) for t in node.operands]
        if isinstance(node, Slice | Concat | Iota):
            self._note_starts(tensor, node)
            return [(t, _padded(t.shape, self._rank)) for t in node.operands]
        self._simple = self._is_view_of_buffer(node)
        return []

    def _is_view_of_buffer(self, node: Node) -> bool:
        if not isinstance(node, Reshape):
            return False
        return self._context.space.storage(node.operand) is not None

    def _note_starts(self, tensor: Tensor, node: Slice | Concat | Iota) -> None:
        first = self._rank - tensor.rank
        if not isinstance(node, Slice):
            self.starts.add(first + node.axis)
            if isinstance(node, Iota):
                self.starts.add(first + node.axis + 1)
            return
        cut = zip(node.start, node.step, node.operand.shape, tensor.shape, strict=True)
        for i, (start, step, whole, size) in enumerate(cut):
            if start != 0 or step != 1 or whole != size:
                self.starts.add(first + i)
            if step != 1:
                self.starts.add(first + i + 1)


class _Merge:
    """Rebuild the tensors of a stage under merged dimensions; buffers stay where they are."""

    def __init__(self, stage: Stage, context: Context, groups: list[list[int]]) -> None:
        self._stage = stage
        self._context = context
        self._groups = groups
        self._made: dict[Tensor, Tensor] = {}

    def stage(self) -> Stage:
        stores = []
        for tensor in self._stage.stores:
            merged = self._merged(tensor)
            storage = self._context.space.storages[tensor]
            self._context.space.storages[merged] = storage
            stores.append(merged)
        return Stage(self._shape(self._stage.shape), None, stores)

    def _shape(self, shape: Shape) -> Shape:
        padded = _padded(shape, len(self._stage.shape))
        return tuple(product(padded[i] for i in group) for group in self._groups)

    def _merged(self, tensor: Tensor) -> Tensor:
        if tensor not in self._made:
            self._made[tensor] = Tensor(self._shape(tensor.shape), tensor.dtype, self._node(tensor))
        return self._made[tensor]

    def _node(self, tensor: Tensor) -> Node:
        node = tensor.node
        if is_read(tensor, self._stage, self._context) or isinstance(node, Parameter):
            return Reshape(tensor)
        if isinstance(node, Constant):
            return node
        if isinstance(node, Reshape):
            return Reshape(node.operand)
        made = {t: self._merged(t) for t in node.operands}
        if isinstance(node, Concat):
            return Concat(tuple(made[t] for t in node.operands), self._group_of(tensor, node.axis))
        if isinstance(node, Iota):
            return Iota(self._group_of(tensor, node.axis))
        if isinstance(node, Slice):
            return self._slice(node, made[node.operand])
        return over(node, made)  # element-wise: the same under any dimensions

    def _group_of(self, tensor: Tensor, axis: int) -> int:
        place = len(self._stage.shape) - tensor.rank + axis
        return next(g for g, group in enumerate(self._groups) if place in group)

    def _slice(self, node: Slice, operand: Tensor) -> Slice:
        """Return the slice where only the first dimension of a group is cut."""
        missing = len(self._stage.shape) - node.operand.rank
        shape = _padded(node.operand.shape, len(self._stage.shape))
        starts: list[Dim] = [*([0] * missing), *node.start]
        steps = [*([1] * missing), *node.step]
        start = tuple(starts[g[0]] * product(shape[i] for i in g[1:]) for g in self._groups)
        return Slice(operand, start, tuple(steps[g[0]] for g in self._groups))
