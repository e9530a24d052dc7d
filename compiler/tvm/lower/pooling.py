"""Maxima and means over windows of images, and their gradients."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.anchors import Combine, Pool, PoolGradient
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.lower.reduction import ADD
from composite.compiler.tvm.lower.static import known_dims
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.lower.windows import (
    per_window,
    require_gradient,
    spatial,
    window_of,
)
from composite.compiler.tvm.math.numeric import choose
from composite.compiler.tvm.read.node import OpNode


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
    count = dims.product((image.shape[0], *window.counts))
    node = Pool(image, window, combine, mean)
    return per_window(Tensor((count, image.shape[3]), image.dtype, node), image, window)


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
