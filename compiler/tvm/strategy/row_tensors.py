"""Rebuild a stage's tensors with the dimensions of rows first, then those within a row.

Neighbouring dimensions are merged where all operands allow it, so that loops are long. A tensor
with one value a row gets dimensions of 1 for those within a row, whether it had them or not.
"""

from __future__ import annotations

from dataclasses import replace

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import Shape, product
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Constant, Pointwise, Reshape, Tensor
from composite.compiler.tvm.math import division
from composite.compiler.tvm.plan.row_stages import FLAT, VALUE, Rows
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.merge import dimension_groups


def rebuild(stage: Stage, rows: Rows, context: Context) -> tuple[Rows, list[Tensor]]:
    """Return the new dimensions, and the stage's stores as new tensors with the old buffers."""
    return _Rebuild(stage, rows, context).rebuilt()


class _Rebuild:
    def __init__(self, stage: Stage, rows: Rows, context: Context) -> None:
        self._stage = stage
        self._rows = rows
        self._outer = rows.outer or (1,)
        self._rank = len(self._outer) + len(rows.reduced)
        self._target = context.target
        self._storages = context.space.storages
        self._storage = context.space.storage
        self._aligned: dict[tuple[Tensor, bool], Shape] = {}
        self._groups = [[i] for i in range(self._rank)]
        self._made: dict[tuple[Tensor, bool], Tensor] = {}

    def rebuilt(self) -> tuple[Rows, list[Tensor]]:
        self._choose_groups()
        stores: list[Tensor] = []
        for tensor in self._stage.stores:
            made = self._rebuilt(tensor, self._is_flat(tensor))
            if made in stores:  # a value a row that is stored under both of its shapes
                made = pointwise("Identity", lambda _, x: x, (made,), made.dtype, cost=0)
            storage = self._storages[tensor]
            self._storages[made] = storage
            stores.append(made)
        full = self._merged(self._outer + self._rows.reduced)
        cut = sum(group[0] < len(self._outer) for group in self._groups)
        return Rows(full[:cut], full[cut:]), stores

    def _is_flat(self, tensor: Tensor) -> bool:
        """Return whether a tensor's dimensions are those of the rows alone."""
        is_value = tensor.rank == len(self._rows.outer) + len(self._rows.reduced)
        return isinstance(tensor.node, Reduce) or not is_value

    def _is_total(self, tensor: Tensor) -> bool:
        """Return whether an operand has the rows' dimensions alone, beside one that has all."""
        return not (self._rows.outer or tensor.shape)

    def _choose_groups(self) -> None:
        """Merge neighbouring dimensions that all tensors have or lack alike."""
        plain = all(self._align(t, self._is_flat(t)) for t in self._stage.stores)
        patterns = {tuple(d != 1 for d in shape) for shape in self._aligned.values()}
        if plain:
            cut = len(self._outer)
            full = self._outer + self._rows.reduced
            inner = dimension_groups(full[cut:], {p[cut:] for p in patterns})
            self._groups = dimension_groups(full[:cut], {p[:cut] for p in patterns})
            self._groups += [[i + cut for i in group] for group in inner]

    def _align(self, tensor: Tensor, flat: bool) -> bool:
        """Note the shapes of all that is computed; False if a view cannot be merged."""
        if (tensor, flat) in self._aligned:
            return True
        shape = tensor.shape
        if flat:
            shape = (1,) * (len(self._outer) - len(shape)) + shape + (1,) * len(self._rows.reduced)
        self._aligned[tensor, flat] = (1,) * (self._rank - len(shape)) + shape
        if self._is_given(tensor) or isinstance(tensor.node, Constant):
            return True
        inside = self._inside(tensor, flat)
        return inside is not None and all(self._align(*one) for one in inside)

    def _is_given(self, tensor: Tensor) -> bool:
        """Return whether it lies in a buffer, perhaps under another shape, before the stage."""
        while isinstance(tensor.node, Reshape) and self._storage(tensor) is None:
            tensor = tensor.node.operand
        return self._storage(tensor) is not None and tensor not in self._stage.stores

    def _inside(self, tensor: Tensor, flat: bool) -> list[tuple[Tensor, bool]] | None:
        """Return what a tensor is computed from within the rows; None if it is a view."""
        node = tensor.node
        if isinstance(node, Pointwise):
            return [(t, flat or self._is_total(t)) for t in node.operands]
        if isinstance(node, Reduce):
            return [(node.operand, False)]
        if isinstance(node, Reshape):
            # A value a row under its other shape. Any other reshape moves elements, even where its
            # operand has a shape of the rows': [rows, 1, elements] of [rows, elements] is one.
            source, value, alone = node.operand, self._rows.shape(VALUE), self._rows.shape(FLAT)
            if flat and (tensor.shape, source.shape) == (alone, value):
                return [(source, False)]
            if not flat and (tensor.shape, source.shape) == (value, alone):
                return [(source, True)]
        return None

    def _merged(self, shape: Shape) -> Shape:
        return tuple(product(shape[i] for i in group) for group in self._groups)

    def _rebuilt(self, tensor: Tensor, flat: bool) -> Tensor:
        key = (tensor, flat)
        if key not in self._made:
            self._align(tensor, flat)
            self._made[key] = self._make(tensor, flat, self._merged(self._aligned[key]))
        return self._made[key]

    def _make(self, tensor: Tensor, flat: bool, shape: Shape) -> Tensor:
        node = tensor.node
        if isinstance(node, Constant) and self._storage(tensor) is None:
            value = node.value.reshape(-1)[:1].reshape((1,) * len(shape))
            return Tensor((1,) * len(shape), tensor.dtype, Constant(value))
        inside = None if self._is_given(tensor) else self._inside(tensor, flat)
        if inside is None:
            return self._view(tensor, shape)
        operands = tuple(self._rebuilt(*one) for one in inside)
        if isinstance(node, Pointwise):
            if self._divides_rows(node, operands):
                return division.divide_by_one(*operands)
            return Tensor(shape, tensor.dtype, replace(node, operands=operands))
        if isinstance(node, Reduce):
            axes = tuple(i for i, g in enumerate(self._groups) if g[0] >= len(self._outer))
            return Tensor(shape, tensor.dtype, Reduce(operands[0], axes, node.combine))
        return operands[0]

    def _divides_rows(self, node: Pointwise, operands: tuple[Tensor, ...]) -> bool:
        """Return whether a node divides all elements of a row by one value."""
        if node.op not in division.OPS or not self._target.has_fma:
            return False
        x, divisor = operands
        cut = sum(group[0] < len(self._outer) for group in self._groups)
        one = all(d == 1 for d in divisor.shape[cut:]) and not isinstance(divisor.node, Constant)
        return one and x.shape[:cut] == divisor.shape[:cut] and x.shape != divisor.shape

    def _view(self, tensor: Tensor, shape: Shape) -> Tensor:
        source = tensor
        if isinstance(tensor.node, Reshape) and self._is_given(tensor):
            while isinstance(source.node, Reshape) and self._storage(source) is None:
                source = source.node.operand
        if source.shape == shape:
            return source
        if source in self._stage.stores:  # its buffer is empty yet
            source = Tensor(source.shape, source.dtype, source.node)
        return Tensor(shape, tensor.dtype, Reshape(source))
