"""Tensors and the nodes that compute them: what any node is asked, and the nodes without loops.

Scalar bodies are callables that receive TVM expressions, so that nothing here imports TVM. Nodes
around which loops are written are in :mod:`.anchors` and :mod:`.loop`, the other views in
:mod:`.views`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from composite.compiler.tvm.ir.dims import Shape

# A TVM expression. A body receives the block it is emitted into and one expression an operand, all
# of the same number of lanes, in the operand's compute dtype; it returns the result's expression.
Expr = Any
Body = Callable[..., Expr]


@dataclass(frozen=True, eq=False)
class Node:
    """How a tensor is computed; a subclass's fields hold the operands and what else it takes.

    The class attributes are what passes, the planner and strategies ask of any node.

    Attributes:
        is_anchor: Whether it is computed in loops of its own, around which a stage is made.
        takes_epilogue: Of an anchor, whether its loops complete one element after the other, so
            that element-wise work on an element can follow in the same loops.
        reads_memory: Whether its operands must be stored, or be views of what is stored.
        is_given: Whether its elements are in a buffer already: a caller's, or a loop's result.
        is_strided_view: Whether strides into the operand's buffer may say where its elements are.
        selects: Whether it may leave out elements of its operands.
        is_element_wise: Whether an element is made of its operands' elements at the same place, by
            NumPy's broadcasting.
    """

    is_anchor: ClassVar[bool] = False
    takes_epilogue: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = False
    is_given: ClassVar[bool] = False
    is_strided_view: ClassVar[bool] = False
    selects: ClassVar[bool] = False
    is_element_wise: ClassVar[bool] = False

    # Neither is a property: a field of that name in a subclass must be able to take its place.
    @cached_property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors that are read: those among the fields, in their order."""
        found: list[Tensor] = []
        for one in fields(self):
            value = getattr(self, one.name)
            parts = value if isinstance(value, tuple) else (value,)
            found += [part for part in parts if isinstance(part, Tensor)]
        return tuple(found)

    @cached_property
    def cost(self) -> int:
        """The vector instructions that an element takes beside its operands, roughly."""
        return 0

    @property
    def title(self) -> str:
        """What it does, for people."""
        return type(self).__name__


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value: its shape, its TF dtype, how it is computed, and its elements where known.

    ``known`` holds ints and sizes (:data:`dims.Dim`) as an object array, for the shape arithmetic
    of a body; such a tensor can still be read as data. ``is_result`` says that it is what an op of
    TensorFlow's returns, which rounds it to its dtype.
    """

    shape: Shape
    dtype: str
    node: Node
    known: np.ndarray | None = None
    is_result: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @cached_property
    def reshaped(self) -> dict[Shape, Tensor]:
        """What it was made under other shapes, by :func:`graph.reshape`."""
        return {}


@dataclass(frozen=True)
class Parameter(Node):
    """Input ``index`` of the function."""

    is_given: ClassVar[bool] = True

    index: int


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """Elements known now; an object array when some are sizes."""

    value: np.ndarray

    @property
    def title(self) -> str:
        """The value, or how many there are."""
        flat = self.value.reshape(-1)
        return f"constant {flat[0]}" if flat.size == 1 else f"constant of {flat.size} elements"


@dataclass(frozen=True)
class Pointwise(Node):
    """Each element from the operands' elements at its place, by NumPy's broadcasting.

    ``cost`` is the number of vector instructions, roughly. ``jumps`` states that results may be far
    apart where operands are near each other; results that are no floats always may.
    """

    is_element_wise: ClassVar[bool] = True

    op: str
    operands: tuple[Tensor, ...] = field()
    body: Body
    cost: int = 1
    jumps: bool = False

    @property
    def title(self) -> str:
        """The op."""
        return self.op


@dataclass(frozen=True)
class Reshape(Node):
    """The operand's elements in row-major order under another shape."""

    is_strided_view: ClassVar[bool] = True

    operand: Tensor


@dataclass(frozen=True)
class Transpose(Node):
    """Dimension ``i`` of the result is dimension ``permutation[i]`` of the operand."""

    is_strided_view: ClassVar[bool] = True

    operand: Tensor
    permutation: tuple[int, ...]
