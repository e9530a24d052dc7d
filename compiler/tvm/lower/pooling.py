"""Maxima and means over windows of images, and their gradients.

Of images with few channels lanes run along the columns too, where windows lie side by side: each
column is combined first, then as many neighbours as a window has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
from tvm import tirx

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import Combine, Pool, PoolGradient
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.lower.data import converted
from composite.compiler.tvm.lower.joining import padded
from composite.compiler.tvm.lower.reduction import ADD
from composite.compiler.tvm.lower.static import known_dims
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.lower.windows import (
    per_window,
    require_gradient,
    spatial,
    window_of,
)
from composite.compiler.tvm.math.numeric import choose, like, mul
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_NARROW = 16
"""Channels that fill a vector of every CPU."""
_NEIGHBOURS = 32
"""Columns that a window may have where each is read in a row of operations."""


def _lower_max_pool(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (image,) = inputs
    node.require(image.dtype, *NUMBERS)
    return [pool(image, _window(node, image.shape), largest(image.dtype), mean=False)]


def largest(dtype: str) -> Combine:
    """Return what MaxPool combines elements of a dtype by."""
    least = _least(dtype)
    return Combine("Max", lambda _: least, _larger)


def _larger(_: Expr, so_far: Expr, value: Expr) -> Expr:
    """Return the larger of both; a NaN in the image is skipped, as in TF."""
    return choose(value > so_far, value, so_far)


def _least(dtype: str) -> float:
    """Return the least finite number of a dtype, which TF's MaxPool starts from."""
    if dtype.startswith("int"):
        return int(np.iinfo(dtype).min)
    return float(ml_dtypes.finfo(dtype).min)


def _lower_avg_pool(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (image,) = inputs
    node.require(image.dtype, *FLOATS)
    return [pool(image, _window(node, image.shape), ADD, mean=True)]


def _window(node: OpNode, image: Shape) -> Window:
    return window_of(node, image, spatial(node, "ksize", 2))


def pool(image: Tensor, window: Window, combine: Combine, *, mean: bool) -> Tensor:
    """Return the combination, or the mean, over windows of images, which are ``[N, H, W, C]``."""
    if _is_narrow(image.shape, window):
        return _pool_columns(image, window, combine, mean=mean)
    count = dims.product((image.shape[0], *window.counts))
    node = Pool(image, window, combine, mean)
    return per_window(Tensor((count, image.shape[3]), image.dtype, node), image, window)


def _is_narrow(image: Shape, window: Window) -> bool:
    """Return whether windows side by side are all inside of rows of few channels."""
    dense = (window.strides[1], window.dilations[1], window.before[1]) == (1, 1, 0)
    few = isinstance(image[3], int) and image[3] < _NARROW
    size = window.size[1]
    return few and dense and 1 < size <= _NEIGHBOURS and window.counts[1] + size - 1 == image[2]


def _pool_columns(image: Tensor, window: Window, combine: Combine, *, mean: bool) -> Tensor:
    """Return a pool as one over the rows, whose results are combined with their neighbours."""
    batch, height, width, channels = image.shape
    lines = _as_lines(image, (batch, height, width * channels))
    # A maximum begins from the least number, also where a window is one row: it skips NaN.
    if window.size[0] > 1 or window.strides[0] > 1 or combine is not ADD:
        lines = pool(lines, _of_rows(window), combine, mean=mean)
    result = _of_neighbours(lines, window, channels, combine, mean=mean)
    return graph.reshape(_to(image.dtype, result), (batch, *window.counts, channels))


def _spread_columns(gradient: Tensor, shape: Shape, window: Window) -> Tensor:
    """Return the gradient of such a mean for images of a shape."""
    batch, height, width, channels = shape
    lines = _as_lines(gradient, (batch, window.counts[0], window.counts[1] * channels))
    spread = PoolGradient(lines, None, _of_rows(window), (height, 1))
    rows = Tensor((batch * height, lines.shape[3]), lines.dtype, spread)
    around = (window.size[1] - 1) * channels
    wider = padded(
        graph.reshape(rows, (batch, height, 1, lines.shape[3])), [(0, 0)] * 3 + [(around,) * 2]
    )
    inside = replace(window, counts=(height, width))
    result = _of_neighbours(wider, inside, channels, ADD, mean=True)
    return graph.reshape(_to(gradient.dtype, result), shape)


def _as_lines(image: Tensor, shape: Shape) -> Tensor:
    """Return images as columns of lines, in the dtype of what is computed of them."""
    batch, height, line = shape
    return graph.reshape(_to(compute_dtype(image.dtype), image), (batch, height, 1, line))


def _to(dtype: str, tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == dtype else converted(tensor, tensor.dtype, dtype)


def _of_rows(window: Window) -> Window:
    """Return the windows along the rows alone, of images with one column."""
    return Window(
        (window.size[0], 1),
        (window.strides[0], 1),
        (window.dilations[0], 1),
        (window.before[0], 0),
        (window.counts[0], 1),
    )


def _of_neighbours(
    lines: Tensor, window: Window, channels: Dim, combine: Combine, *, mean: bool
) -> Tensor:
    """Return what each run of columns of a window has, the result lines being ``counts`` long."""
    size = (*lines.shape[:3], window.counts[1] * channels)
    parts = [views.sliced(lines, (0, 0, 0, k * channels), size) for k in range(window.size[1])]
    op, result = "AddV2" if combine is ADD else "Maximum", parts[0]
    for part in parts[1:]:
        result = pointwise(op, combine.apply, (result, part), lines.dtype)
    return pointwise("Mul", _share(window.size[1]), (result,), lines.dtype) if mean else result


def _share(count: int) -> Callable[[Block, Expr], Expr]:
    """Return a multiplication by the reciprocal of a count, which is exact over the ring."""

    def share(block: Block, x: Expr) -> Expr:
        exact = tirx.Div(like(1.0, x), like(float(count), x))
        return mul(block, x, block.stand_ins.add(like(1 / count, x), exact))

    return share


def _lower_max_pool_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    image, _, gradient = inputs  # the largest of each window is found again
    node.require(image.dtype, *FLOATS)
    return [_gradient(node, image.shape, gradient, image)]


def _lower_avg_pool_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    shape, gradient = inputs
    node.require(gradient.dtype, *FLOATS)
    return [_gradient(node, known_dims(node, shape, "the image's shape"), gradient, None)]


def _gradient(node: OpNode, shape: Shape, gradient: Tensor, image: Tensor | None) -> Tensor:
    window = _window(node, shape)
    require_gradient(node, gradient.shape, (shape[0], *window.counts, shape[3]))
    if image is None and _is_narrow(shape, window):
        return _spread_columns(gradient, shape, window)
    spread = PoolGradient(gradient, image, window, (shape[1], shape[2]))
    return spread_gradient(node, spread, shape)


def spread_gradient(node: OpNode, spread: PoolGradient, shape: Shape) -> Tensor:
    """Return what windows give to the pixels of images of a shape."""
    if not isinstance(shape[3], int):
        raise NotCovered(f"{node.op}: an unknown number of channels")
    rows = dims.product(shape[:3])
    return graph.reshape(Tensor((rows, shape[3]), spread.gradient.dtype, spread), shape)


LOWERINGS: dict[str, Callable[[OpNode, list[Tensor]], list[Tensor]]] = {
    "MaxPool": _lower_max_pool,
    "AvgPool": _lower_avg_pool,
    "MaxPoolGrad": _lower_max_pool_gradient,
    "AvgPoolGrad": _lower_avg_pool_gradient,
}
