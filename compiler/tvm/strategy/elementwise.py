"""Element-wise chains: one pass over the output, everything else computed in registers.

Dimensions that every operand has or lacks alike are merged, so that the innermost loop is long.
It runs over whole vectors; the last one overlaps its neighbour instead of needing a tail, which is
right because outputs never alias inputs. Rows shorter than a vector are computed one by one.
"""

from __future__ import annotations

from ..access import Access, Lane, Storage
from ..block import ceil_quotient, index, maximum, minimum, quotient
from ..dims import Dim, Shape, product
from ..graph import ITEM_SIZE, Constant, Expr, Parameter, Pointwise, Reshape, Tensor, compute_dtype
from ..stage import Stage
from .base import Context, chain_cost, elements, tasks, unflatten

_CHUNK = 8192
"""Elements that one task computes, at least."""


class Elementwise:
    """Any stage without an anchor."""

    name = "elementwise"

    def fits(self, stage: Stage, context: Context) -> bool:  # noqa: ARG002
        """Take what has no anchor."""
        return stage.anchor is None

    def emit(self, stage: Stage, context: Context) -> None:
        """Write the loops."""
        stage = merge_dimensions(stage, context)
        shape = stage.shape or (1,)
        inner = context.size(shape[-1])
        rows = elements(shape[:-1], context)
        lanes = _lanes(stage, context)
        per_row = maximum(1, ceil_quotient(inner, _CHUNK))
        grouped = maximum(1, quotient(_CHUNK, maximum(1, inner)))
        cycles = quotient(elements(shape, context) * chain_cost(stage, context), lanes)
        writer = _RowWriter(stage, context, lanes)

        def body(task: Expr) -> None:
            block = context.block
            group = block.bind(quotient(task, per_row), "group")
            part = block.bind(task - group * per_row, "part")
            first = block.bind(index(group * grouped), "row")
            count = minimum(grouped, rows - first)
            with block.loop(count, "r") as r:
                start = block.bind(index(part * _CHUNK), "start")
                stop = block.bind(index(minimum(start + _CHUNK, inner)), "stop")
                writer.write(block.bind(first + r, "row"), start, stop, inner)

        groups = quotient(rows + (grouped - 1), grouped)
        tasks(context, groups * per_row, cycles, body)


class _RowWriter:
    """Writes a run of elements within one row."""

    def __init__(self, stage: Stage, context: Context, lanes: int) -> None:
        self._stage = stage
        self._context = context
        self._lanes = lanes

    def write(self, row: Expr, start: Expr, stop: Expr, inner: Expr | int) -> None:
        block, lanes = self._context.block, self._lanes
        indices = unflatten(self._context, row, self._stage.shape[:-1] or (1,))
        if len(self._stage.shape) <= 1:
            indices = []
        is_long = inner >= lanes if isinstance(inner, int) else index(inner) >= lanes
        with (
            block.when(is_long),
            block.loop(ceil_quotient(stop - start, lanes), "v") as v,
        ):
            at = block.bind(index(minimum(start + v * lanes, inner - lanes)), "at")
            self._element([*indices, Lane(at, lanes)])
        if isinstance(is_long, bool):
            with block.when(not is_long), block.loop(stop - start, "e") as e:
                self._element([*indices, start + e])
            return
        with block.otherwise(), block.loop(stop - start, "e") as e:
            self._element([*indices, start + e])

    def _element(self, at: list[object]) -> None:
        access: Access = self._context.access()
        if not self._stage.shape:
            at = []
        for tensor in self._stage.stores:
            value = access.compute(tensor, at)
            self._context.store(tensor, at, value)


def _lanes(stage: Stage, context: Context) -> int:
    """Return lanes for the narrowest dtype that is computed with; wider ones take two registers."""
    dtypes = {compute_dtype(t.dtype) for t in stage.stores} - {"bool"}
    narrow = any(ITEM_SIZE[d] == 4 for d in dtypes) or not dtypes
    return context.lanes("float32" if narrow else "float64")


def merge_dimensions(stage: Stage, context: Context) -> Stage:
    """Return the stage over as few dimensions as give the same accesses."""
    patterns = _patterns(stage, context)
    if patterns is None or len(stage.shape) < 2:
        return stage
    groups = dimension_groups(stage.shape, patterns)
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


def _patterns(stage: Stage, context: Context) -> set[tuple[bool, ...]] | None:
    """Return which dimensions each tensor that is read really has; None if it is not so simple."""
    patterns: set[tuple[bool, ...]] = set()
    stack = list(stage.stores)
    seen = set(stack)
    while stack:
        tensor = stack.pop()
        missing = len(stage.shape) - tensor.rank
        has = (False,) * missing + tuple(d != 1 for d in tensor.shape)
        patterns.add(has)
        computed = tensor in stage.stores or context.space.storage(tensor) is None
        if not computed or isinstance(tensor.node, Constant):
            continue
        if isinstance(tensor.node, Pointwise):
            fresh = [t for t in tensor.node.operands if t not in seen]
            seen.update(fresh)
            stack.extend(fresh)
        elif not (
            isinstance(tensor.node, Reshape)
            and context.space.storage(tensor.node.operand) is not None
        ):
            return None
    return patterns


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
            self._context.space.storages[merged] = Storage(storage.buffer, storage.dtype)
            stores.append(merged)
        return Stage(self._shape(self._stage.shape), None, stores)

    def _shape(self, shape: Shape) -> Shape:
        padded: tuple[Dim, ...] = (1,) * (len(self._stage.shape) - len(shape)) + shape
        return tuple(product(padded[i] for i in group) for group in self._groups)

    def _merged(self, tensor: Tensor) -> Tensor:
        if tensor not in self._made:
            self._made[tensor] = self._rebuild(tensor)
        return self._made[tensor]

    def _rebuild(self, tensor: Tensor) -> Tensor:
        shape = self._shape(tensor.shape)
        node = tensor.node
        stored = tensor not in self._stage.stores and (
            self._context.space.storage(tensor) is not None
        )
        if stored or isinstance(node, Parameter):
            return Tensor(shape, tensor.dtype, Reshape(tensor))
        if isinstance(node, Pointwise):
            operands = tuple(self._merged(t) for t in node.operands)
            return Tensor(shape, tensor.dtype, Pointwise(node.op, operands, node.body, node.cost))
        if isinstance(node, Constant):
            value = node.value.reshape(-1)[:1].reshape((1,) * len(shape))
            return Tensor((1,) * len(shape), tensor.dtype, Constant(value))
        if isinstance(node, Reshape):
            return Tensor(shape, tensor.dtype, Reshape(node.operand))
        raise TypeError(f"{type(node).__name__} has no merged form")
