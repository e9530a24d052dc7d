"""The lowered function: a DAG of tensors with shapes, dtypes and how an element is computed.

It says what is computed, for the op table to build and the planner to read. It does not say in
which loops, nor hold anything of TVM: scalar bodies are callables that receive TVM expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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


class Node(Protocol):
    """How a tensor is computed: one of the classes here or in :mod:`.views`."""

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors that are read."""


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
class Parameter:
    """Input ``index`` of the function."""

    index: int

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """Nothing is read."""
        return ()


@dataclass(frozen=True, eq=False)
class Constant:
    """Elements known now; an object array when some are sizes."""

    value: np.ndarray

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """Nothing is read."""
        return ()


@dataclass(frozen=True)
class Pointwise:
    """Each element from the operands' elements at its place, by NumPy's broadcasting.

    ``cost`` is the number of vector instructions, roughly.
    """

    op: str
    operands: tuple[Tensor, ...]
    body: Body
    cost: int = 1


@dataclass(frozen=True)
class Reshape:
    """The operand's elements in row-major order under another shape."""

    operand: Tensor

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True)
class Transpose:
    """Dimension ``i`` of the result is dimension ``permutation[i]`` of the operand."""

    operand: Tensor
    permutation: tuple[int, ...]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True)
class MatMul:
    """``[..., M, K] @ [..., K, N]``; with ``transpose_a`` (``_b``) stored as [K, M] ([N, K])."""

    a: Tensor
    b: Tensor
    transpose_a: bool = False
    transpose_b: bool = False

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """Both factors."""
        return (self.a, self.b)


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
class Reduce:
    """The combination over ``axes``, which vanish from the shape."""

    operand: Tensor
    axes: tuple[int, ...]
    combine: Combine

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The one operand."""
        return (self.operand,)


@dataclass(frozen=True)
class Scan:
    """The combination of all elements up to each along ``axis``.

    Without the element itself if ``exclusive``, from the last element on if ``reverse``.
    """

    operand: Tensor
    axis: int
    combine: Combine
    exclusive: bool
    reverse: bool

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The one operand."""
        return (self.operand,)


class Apart:
    """An anchor no element of which is finished before all are: nothing joins its loops."""


@dataclass(frozen=True)
class Scatter(Apart):
    """Rows of ``updates`` combined at the places that ``indices`` hold; elsewhere the identity.

    There is one tensor of indices for each dimension of the result but the last, which is a row;
    their shape is that of all dimensions of ``updates`` but the last. A row with a negative index
    is left out.
    """

    updates: Tensor
    indices: tuple[Tensor, ...]
    combine: Combine

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The rows, then the indices."""
        return (self.updates, *self.indices)


@dataclass(frozen=True)
class Convolution:
    """The windows of ``image`` ``[N, H, W, C]`` times ``filter`` ``[rows, columns, D, F]``.

    The result is ``[N * windows, F]``, windows in row-major order: its rows are those of a product.
    Padding is zero. There are ``C / D`` groups: of the ``F`` filters, an equal share for each. If
    ``transposed``, ``filter`` is ``[rows, columns, F, D]``, its rows and columns run backwards.
    """

    image: Tensor
    filter: Tensor
    window: Window
    transposed: bool = False

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The image and the filter."""
        return (self.image, self.filter)


@dataclass(frozen=True)
class FilterGradient:
    """The windows of ``image`` transposed, times ``gradient`` ``[N * windows, F]``.

    The result is ``[rows * columns * C, F]``: the gradient of the filters of a convolution.
    """

    image: Tensor
    gradient: Tensor
    window: Window

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The image and the gradient."""
        return (self.image, self.gradient)


@dataclass(frozen=True)
class Pool:
    """The combination over each window of ``image``, channel by channel; padding does not count.

    The result is ``[N * windows, C]``. With ``mean`` it is divided by the elements in the window.
    """

    image: Tensor
    window: Window
    combine: Combine
    mean: bool = False

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The image."""
        return (self.image,)


@dataclass(frozen=True)
class PoolGradient:
    """What each pixel is given by the windows it is in, of ``gradient`` ``[N, windows..., C]``.

    A window gives its gradient to the first of its largest elements of ``image``; without an image,
    an equal part to each of its elements. The result is ``[N * H * W, C]``, ``sizes`` being (H, W).
    """

    gradient: Tensor
    image: Tensor | None
    window: Window
    sizes: tuple[Dim, Dim]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The gradient, and the image if it is asked."""
        return (self.gradient,) if self.image is None else (self.gradient, self.image)


WINDOWED = (Convolution, FilterGradient, Pool, PoolGradient)
ANCHORS = (MatMul, Reduce, Scan, Apart, *WINDOWED)


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


def topological(outputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return everything that the outputs need, operands first, in a stable order."""
    order: list[Tensor] = []
    seen: set[int] = set()
    stack: list[tuple[Tensor, Iterator[Tensor]]] = []

    def visit(tensor: Tensor) -> None:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            stack.append((tensor, iter(tensor.node.operands)))

    for output in outputs:
        visit(output)
        while stack:
            tensor, operands = stack[-1]
            operand = next(operands, None)
            if operand is None:
                order.append(tensor)
                stack.pop()
            else:
                visit(operand)
    return order
