"""Anchors: nodes that are computed in loops of their own, around which a stage is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.tensor import Body, Node, Tensor
from composite.compiler.tvm.ir.window import Window


@dataclass(frozen=True)
class MatMul(Node):
    """``[..., M, K] @ [..., K, N]``; with ``transpose_a`` (``_b``) stored as [K, M] ([N, K]).

    Factors may be narrower integers than the product: ``zeros`` are taken from their elements.
    """

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    a: Tensor
    b: Tensor
    transpose_a: bool = False
    transpose_b: bool = False
    zeros: tuple[int, int] = (0, 0)


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
    ``zeros`` as for :class:`MatMul`; padding is the image's.
    """

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    image: Tensor
    filter: Tensor
    window: Window
    transposed: bool = False
    zeros: tuple[int, int] = (0, 0)


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
class ChannelFilterGradient(Node):
    """For each image, the gradient of the filters ``[rows, columns, C, M]`` of its own channels.

    ``gradient`` is ``[N, windows..., C * M]``, the result ``[N, rows * columns * C * M]``. Padding
    is zero.
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

    A window gives its gradient to the first of its largest elements of ``image``, or ``to_all`` of
    these; without an image, an equal part to each of its elements. The result is
    ``[N * H * W, C]``, ``sizes`` being (H, W).
    """

    is_anchor: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    gradient: Tensor
    image: Tensor | None
    window: Window
    sizes: tuple[Dim, Dim]
    to_all: bool = False
