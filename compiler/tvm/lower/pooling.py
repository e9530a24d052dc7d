"""Maxima and means over windows of images."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from .. import dims
from ..graph import Combine, Expr, Pool, Tensor
from ..node import OpNode
from ..numeric import choose
from .reduction import ADD
from .unary import FLOATS, NUMBERS
from .windows import per_window, spatial, window_of


def _lower_max_pool(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (image,) = inputs
    node.require(image.dtype, *NUMBERS)
    least = _least(image.dtype)
    combine = Combine("Max", lambda _: least, _larger)
    return [_pool(node, image, combine, mean=False)]


def _larger(_: Expr, so_far: Expr, value: Expr) -> Expr:
    """Return the larger of both; a NaN in the image is passed over, as in TF."""
    return choose(value > so_far, value, so_far)


def _least(dtype: str) -> float:
    """Return the least finite number of a dtype, which TF's MaxPool starts from."""
    if dtype.startswith("int"):
        return int(np.iinfo(dtype).min)
    return float(ml_dtypes.finfo(dtype).min)


def _lower_avg_pool(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (image,) = inputs
    node.require(image.dtype, *FLOATS)
    return [_pool(node, image, ADD, mean=True)]


def _pool(node: OpNode, image: Tensor, combine: Combine, *, mean: bool) -> Tensor:
    window = window_of(node, image, spatial(node, "ksize"))
    count = dims.product((image.shape[0], *window.counts))
    pool = Pool(image, window, combine, mean)
    return per_window(Tensor((count, image.shape[3]), image.dtype, pool), image, window)


LOWERINGS: dict[str, Callable[[OpNode, list[Tensor]], list[Tensor]]] = {
    "MaxPool": _lower_max_pool,
    "AvgPool": _lower_avg_pool,
}
