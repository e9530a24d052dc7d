"""The lowered function: a DAG of tensors with shapes, dtypes and how an element is computed.

It says what is computed, for the op table to build and the planner to read. It does not say in
which loops, nor hold anything of TVM: scalar bodies are callables that receive TVM expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.window import Window

# A TVM expression. A body receives the block it is emitted into and one expression an operand, all
# of the same number of lanes, in the operand's compute dtype; it returns the result's expression.
Expr = Any
Body = Callable[..., Expr]

DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "bool")
NARROW_FLOATS = ("float16", "bfloat16")
ITEM_SIZE = {
    "float64": 8,
    "int64": 8,
    "float32": 4,
    "int32": 4,
    "float16": 2,
    "bfloat16": 2,
    "bool": 1,
}


def compute_dtype(dtype: str) -> str:
    """Return the dtype in which values of ``dtype`` are computed: 16-bit floats in float32."""
    return "float32" if dtype in NARROW_FLOATS else dtype


@dataclass(frozen=True, eq=False)
class Node:
    """How a tensor is computed; a subclass's fields hold the operands and what else it takes.

    The class attributes are what passes, the planner and strategies ask of any node.

    Attributes:
        is_anchor: Whether it is computed in loops of its own, around which a stage is made.
        takes_epilogue: Of an anchor, whether an element is finished once it is computed, so that
            element-wise work on it can be done in the same loops.
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
    of a body; such a tensor can still be read as data.
    """

    shape: Shape
    dtype: str
    node: Node
    known: np.ndarray | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


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

    ``cost`` is the number of vector instructions, roughly.
    """

    is_element_wise: ClassVar[bool] = True

    op: str
    operands: tuple[Tensor, ...] = field()
    body: Body
    cost: int = 1

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


@dataclass(frozen=True)
class MatMul(Node):
    """``[..., M, K] @ [..., K, N]``; with ``transpose_a`` (``_b``) stored as [K, M] ([N, K])."""

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    a: Tensor
    b: Tensor
    transpose_a: bool = False
    transpose_b: bool = False


@dataclass(frozen=True)
class Combine:
    """How a reduction puts two elements together: associative and commutative.

    Attributes:
        name: TensorFlow's, such as "Sum".
        identity: dtype -> the value of no elements.
        apply: The combination of two values, scalars or vectors.
    """

    name: str
    identity: Callable[[str], float]
    apply: Body


@dataclass(frozen=True)
class Reduce(Node):
    """The combination over ``axes``, which vanish from the shape."""

    is_anchor: ClassVar[bool] = True

    operand: Tensor
    axes: tuple[int, ...]
    combine: Combine

    @property
    def title(self) -> str:
        """The combination, and over which dimensions."""
        return f"{self.combine.name}{list(self.axes)}"


@dataclass(frozen=True)
class Scan(Node):
    """The combination of all elements up to each along ``axis``.

    Without the element itself if ``exclusive``, from the last element on if ``reverse``.
    """

    is_anchor: ClassVar[bool] = True

    operand: Tensor
    axis: int
    combine: Combine
    exclusive: bool
    reverse: bool


@dataclass(frozen=True)
class Scatter(Node):
    """Rows of ``updates`` combined at the places that ``indices`` hold; elsewhere the identity.

    There is one tensor of indices for each dimension of the result but the last, which is a row;
    their shape is that of all dimensions of ``updates`` but the last. A row with a negative index
    is left out.
    """

    is_anchor: ClassVar[bool] = True
    takes_epilogue: ClassVar[bool] = False

    updates: Tensor
    indices: tuple[Tensor, ...]
    combine: Combine


@dataclass(frozen=True)
class Convolution(Node):
    """The windows of ``image`` ``[N, H, W, C]`` times ``filter`` ``[rows, columns, D, F]``.

    The result is ``[N * windows, F]``, windows in row-major order: its rows are those of a product.
    Padding is zero. There are ``C / D`` groups: of the ``F`` filters, an equal share for each. If
    ``transposed``, ``filter`` is ``[rows, columns, F, D]``, its rows and columns run backwards.
    """

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    image: Tensor
    filter: Tensor
    window: Window
    transposed: bool = False


@dataclass(frozen=True)
class FilterGradient(Node):
    """The windows of ``image`` transposed, times ``gradient`` ``[N * windows, F]``.

    The result is ``[rows * columns * C, F]``: the gradient of the filters of a convolution.
    """

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    image: Tensor
    gradient: Tensor
    window: Window


@dataclass(frozen=True)
class Pool(Node):
    """The combination over each window of ``image``, channel by channel; padding does not count.

    The result is ``[N * windows, C]``. With ``mean`` it is divided by the elements in the window.
    """

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    image: Tensor
    window: Window
    combine: Combine
    mean: bool = False


@dataclass(frozen=True)
class PoolGradient(Node):
    """What each pixel is given by the windows it is in, of ``gradient`` ``[N, windows..., C]``.

    A window gives its gradient to the first of its largest elements of ``image``; without an image,
    an equal part to each of its elements. The result is ``[N * H * W, C]``, ``sizes`` being (H, W).
    """

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    gradient: Tensor
    image: Tensor | None
    window: Window
    sizes: tuple[Dim, Dim]


@dataclass(frozen=True)
class Function:
    """What is to be compiled: parameters in order, and the tensors to return.

    ``minimums`` holds the least value of a symbol for which the function is right, where not 0.
    ``origins`` names the TF node that a tensor comes from, for people; no code depends on it.
    """

    parameters: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    minimums: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[Tensor, str] = field(default_factory=dict)


def pointwise(  # noqa: PLR0913 - a node and its result
    op: str,
    body: Body,
    operands: tuple[Tensor, ...],
    dtype: str,
    *,
    cost: int = 1,
    shape: Shape | None = None,
) -> Tensor:
    """Return the element-wise result; ``shape`` only where it is larger than the operands give."""
    full = dims.broadcast_shapes((*(t.shape for t in operands), *([shape] if shape else [])), op)
    return Tensor(full, dtype, Pointwise(op, operands, body, cost))


def constant(value: np.ndarray, dtype: str) -> Tensor:
    """Return the tensor of known elements; integers stay readable as sizes."""
    known = value.astype(object) if dtype in ("int32", "int64") else None
    return Tensor(tuple(value.shape), dtype, Constant(value), known)


def reshape(tensor: Tensor, shape: Shape) -> Tensor:
    """Return the elements under another shape of the same size.

    A reshape moves below an element-wise node that broadcasts nothing, so that the view reaches
    the buffer where it costs nothing, and the chain above stays one chain.
    """
    if shape == tensor.shape:
        return tensor
    known = tensor.known.reshape(shape) if tensor.known is not None else None
    node = tensor.node
    if isinstance(node, Reshape):
        return reshape(node.operand, shape)
    if isinstance(node, Constant):
        return Tensor(shape, tensor.dtype, Constant(node.value.reshape(shape)), known)
    if isinstance(node, Pointwise) and all(
        t.shape == tensor.shape or not t.shape for t in node.operands
    ):
        moved = tuple(reshape(t, shape) if t.shape else t for t in node.operands)
        return Tensor(shape, tensor.dtype, Pointwise(node.op, moved, node.body, node.cost), known)
    return Tensor(shape, tensor.dtype, Reshape(tensor), known)


def is_squeeze(shape: Shape, other: Shape) -> bool:
    """Return whether two shapes differ in dimensions of 1 alone."""
    return [d for d in shape if d != 1] == [d for d in other if d != 1]


def is_table(tensor: Tensor) -> bool:
    """Return whether the tensor is a constant of several values, which are written out."""
    node = tensor.node
    if not isinstance(node, Constant):
        return False
    flat = node.value.reshape(-1)
    return any(e is not flat[0] and e != flat[0] for e in flat)


def transpose(tensor: Tensor, permutation: tuple[int, ...]) -> Tensor:
    """Return the tensor with its dimensions permuted."""
    if permutation == tuple(range(tensor.rank)):
        return tensor
    if isinstance(tensor.node, Transpose):
        inner = tensor.node.permutation
        return transpose(tensor.node.operand, tuple(inner[p] for p in permutation))
    shape = tuple(tensor.shape[p] for p in permutation)
    return Tensor(shape, tensor.dtype, Transpose(tensor, permutation))
