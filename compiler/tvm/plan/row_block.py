"""The stages of a plan on a block of rows: the same tensors with fewer rows, at a place of theirs.

The rows of a chain of stages are numbered by the dimensions that all of them begin with. On a block
all of these are 1 but the last, which is the number of the block's rows. What is computed in the
chain is made anew under that shape; what lies in a buffer is a slice of it. That is possible where
a stage reads of what the chain makes its own rows alone.
"""

from __future__ import annotations

from dataclasses import replace

from composite.compiler.tvm.ir.anchors import MatMul, Reduce
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Node, Parameter, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.views import sliced
from composite.compiler.tvm.plan.stage import Stage


class _ReadsOtherRowsError(Exception):
    pass


class RowBlock:
    """Makes the stages of a chain on a block of rows, in their order.

    Args:
        outer: The dimensions that number the rows.
        starts: Where the block begins in each.
        count: How many of the last dimension it has; of the others it has one.
        stored: What the stages of the plan store.
    """

    def __init__(
        self, outer: Shape, starts: tuple[Dim, ...], count: Dim, stored: frozenset[Tensor]
    ) -> None:
        self._outer = outer
        self._starts = starts
        self._count = count
        self._stored = stored
        self._own: set[Tensor] = set()  # made by the stage that is being added
        self._computed: set[Tensor] = set()  # stored by the stages before
        self._made: dict[tuple[Tensor, int], Tensor] = {}
        self._waits: dict[Tensor, bool] = {}

    def __getitem__(self, tensor: Tensor) -> Tensor:
        """The block of a tensor that a stage of the chain stores."""
        return self._made[tensor, 0]

    def add(self, stage: Stage) -> Stage | None:
        """Return the next stage of the chain on the block.

        None if it is the first that reads nothing of the chain, or if it reads other rows too.
        """
        cut = len(self._outer)
        if any(t.shape[:cut] != self._outer for t in stage.made):
            return None
        self._own, self._waits, known = stage.made, {}, dict(self._made)
        if self._computed and not any(self._is_made_of_chain(t) for t in stage.made):
            return None
        try:
            made = {t: self._block(t, 0) for t in stage.made}
        except _ReadsOtherRowsError:
            self._made = known
            return None
        self._computed |= stage.made & self._stored
        anchor = None if stage.anchor is None else made[stage.anchor]
        stores = [made[t] for t in stage.stores]
        return Stage(self._cut_shape(stage.shape, 0), anchor, stores, stage.reduced)

    def _block(self, tensor: Tensor, shift: int) -> Tensor:
        """Return the block of a tensor whose dimension i is dimension ``i + shift`` of the rows'.

        Those in front, and those that are 1, it has once for all of the rows.
        """
        key = (tensor, shift)
        if key not in self._made:
            self._made[key] = self._make(tensor, shift)
        return self._made[key]

    def _make(self, tensor: Tensor, shift: int) -> Tensor:
        if tensor in self._computed:
            raise _ReadsOtherRowsError  # in another role than its own
        if self._is_given(tensor):
            return self._cut(tensor, shift)
        node = self._follow(tensor, shift)
        if node is not None:
            return Tensor(self._cut_shape(tensor.shape, shift), tensor.dtype, node)
        if self._is_made_of_chain(tensor):
            raise _ReadsOtherRowsError
        # The buffer of what the stage itself makes is not written yet: its elements are computed.
        return self._cut(replace(tensor) if tensor in self._own else tensor, shift)

    def _follow(self, tensor: Tensor, shift: int) -> Node | None:
        """Return the node over the blocks of its operands; None if it is not made row by row."""
        node, cut = tensor.node, len(self._outer) - shift
        if isinstance(node, Pointwise):
            rank = tensor.rank + shift
            blocks = tuple(self._block(t, rank - t.rank) for t in node.operands)
            return replace(node, operands=blocks)
        if isinstance(node, Reduce) and min(node.axes, default=0) >= cut:
            return replace(node, operand=self._block(node.operand, shift))
        if isinstance(node, Reshape) and tensor.shape[:cut] == node.operand.shape[:cut]:
            # Strides tell where a slice of a reshaped buffer lies, not of what is reshaped after.
            if self._is_made_of_chain(tensor) or not self._is_buffer(node.operand):
                return Reshape(self._block(node.operand, shift))
            return None
        if isinstance(node, MatMul) and tensor.rank + shift == len(self._outer) + 1:
            return self._product(tensor, node, shift)
        return None

    def _product(self, tensor: Tensor, node: MatMul, shift: int) -> MatMul:
        left, right = (shift + tensor.rank - t.rank for t in (node.a, node.b))
        if self._is_made_of_chain(node.b):
            raise _ReadsOtherRowsError
        b = self._cut(node.b, right, node.b.rank - 2)
        if not node.transpose_a:
            return replace(node, a=self._block(node.a, left), b=b)
        if self._is_made_of_chain(node.a):
            raise _ReadsOtherRowsError
        batches = self._cut(node.a, left, node.a.rank - 2)
        return replace(node, a=self._cut_columns(batches), b=b)

    def _cut_columns(self, tensor: Tensor) -> Tensor:
        """Return the rows of the block of a tensor that has them as its last dimension."""
        if self._outer[-1] == 1:
            return tensor
        start = (*(0 for _ in tensor.shape[:-1]), self._starts[-1])
        return sliced(tensor, start, (*tensor.shape[:-1], self._count))

    def _cut(self, tensor: Tensor, shift: int, most: int | None = None) -> Tensor:
        """Return the slice of a tensor, of its first ``most`` dimensions at most."""
        start = [
            self._starts[i + shift] if self._is_cut_at(i, d, shift, most) else 0
            for i, d in enumerate(tensor.shape)
        ]
        return sliced(tensor, start, self._cut_shape(tensor.shape, shift, most))

    def _is_cut_at(self, i: int, dim: Dim, shift: int, most: int | None) -> bool:
        within = i + shift < len(self._outer) and (most is None or i < most)
        return within and dim != 1

    def _cut_shape(self, shape: Shape, shift: int, most: int | None = None) -> Shape:
        last = len(self._outer) - 1
        return tuple(
            (self._count if i + shift == last else 1) if self._is_cut_at(i, d, shift, most) else d
            for i, d in enumerate(shape)
        )

    def _is_given(self, tensor: Tensor) -> bool:
        """Return whether the chain finds it in a buffer."""
        is_before = tensor in self._stored and tensor not in self._own
        return isinstance(tensor.node, Parameter) or is_before

    def _is_buffer(self, tensor: Tensor) -> bool:
        """Return whether it is what the chain finds in a buffer, under some shape."""
        while isinstance(tensor.node, Reshape) and not self._is_given(tensor):
            tensor = tensor.node.operand
        return self._is_given(tensor)

    def _is_made_of_chain(self, tensor: Tensor) -> bool:
        """Return whether it is computed from what the chain makes, or is that."""
        if tensor not in self._waits:
            made = tensor in self._computed
            self._waits[tensor] = made or (
                not self._is_given(tensor)
                and any(self._is_made_of_chain(t) for t in tensor.node.operands)
            )
        return self._waits[tensor]
