"""Images of another size: of each pixel the nearest one, or what lies between four, linearly.

Which pixels these are depends on the sizes alone, and is known before the kernel is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import graph, views
from composite.compiler.tvm.ir.dims import static_shape
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.data import converted
from composite.compiler.tvm.lower.static import as_known, known_ints
from composite.compiler.tvm.lower.unary import FLOATS
from composite.compiler.tvm.math.numeric import add, mul, sub
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_MOST = 4096
"""Lines of a result: their places are constants of the kernel."""

_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Scale:
    """How a line of ``size`` pixels becomes one of ``count``, in TensorFlow's float32."""

    size: int
    count: int
    corners: bool
    centers: bool

    @property
    def factor(self) -> np.float32:
        """Pixels of the image to one of the result."""
        if self.corners and self.count > 1:
            return np.float32(np.float32(self.size - 1) / np.float32(self.count - 1))
        return np.float32(np.float32(self.size) / np.float32(self.count))

    def nearest(self) -> npt.NDArray[np.int32]:
        """Return the pixel that is nearest to each of the result."""
        places = np.arange(self.count, dtype=np.float32)
        if self.centers:
            places = places + np.float32(0.5)
        places = places * self.factor
        # TensorFlow rounds halves away from zero.
        whole = np.floor(places + np.float32(0.5)) if self.corners else np.floor(places)
        return np.clip(whole, 0, self.size - 1).astype(np.int32)

    def between(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], _Floats]:
        """Return the pixels before and behind each of the result, and how far it is from one."""
        places = np.arange(self.count, dtype=np.float32)
        if self.centers:
            places = (places + np.float32(0.5)) * self.factor - np.float32(0.5)
        else:
            places = places * self.factor
        before, behind = np.floor(places), np.ceil(places)
        first = np.maximum(before, 0).astype(np.int32)
        last = np.minimum(behind, self.size - 1).astype(np.int32)
        return first, last, places - before


def _lower_nearest(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    image = as_known(inputs[0])
    for axis, scale in enumerate(_scales(node, image, inputs[1]), 1):
        image = _picked(image, scale.nearest(), axis)
    return [image]


def _lower_bilinear(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower it as TensorFlow computes it: in float32, between columns first."""
    image = as_known(inputs[0])
    node.require(image.dtype, *FLOATS)
    if image.dtype != "float32":
        image = converted(image, image.dtype, "float32")
    scales = _scales(node, image, inputs[1])
    if all(scale.size == scale.count for scale in scales):
        return [image]
    rows, columns = (scale.between() for scale in scales)
    top, bottom = (
        _mixed(_picked(line, columns[0], 2), _picked(line, columns[1], 2), columns[2], 2)
        for line in (_picked(image, places, 1) for places in rows[:2])
    )
    return [_mixed(top, bottom, rows[2], 1)]


def _scales(node: OpNode, image: Tensor, size: Tensor) -> list[_Scale]:
    """Return the scales of rows and columns."""
    counts = known_ints(node, size, "size")
    sizes = static_shape(image.shape[1:3])
    if image.rank != 4 or len(counts) != 2 or sizes is None:
        raise NotCovered(f"{node.op}: an image {image.shape} of unknown size")
    if min(*counts, *sizes) < 1 or max(counts) > _MOST:
        raise NotCovered(f"{node.op}: {counts} of {sizes} pixels")
    corners, centers = node.flag("align_corners"), node.flag("half_pixel_centers")
    if corners and centers:
        raise NotCovered(f"{node.op}: corners that are aligned, and centers")  # an error of TF's
    pairs = zip(sizes, counts, strict=True)
    return [_Scale(size, count, corners, centers) for size, count in pairs]


def _picked(image: Tensor, places: npt.NDArray[np.int32], axis: int) -> Tensor:
    """Return the lines of an image at places that are known."""
    if image.shape[axis] == places.size and np.array_equal(places, np.arange(places.size)):
        return image
    return views.gather(image, graph.constant(places, "int32"), axis, 0)


def _mixed(a: Tensor, b: Tensor, share: _Floats, axis: int) -> Tensor:
    """Return what lies between two images, by how far each line is from the first one's."""
    sizes = [share.size if i == axis else 1 for i in range(a.rank)]
    shares = graph.constant(share.reshape(sizes), "float32")

    def body(block: Block, x: Expr, y: Expr, t: Expr) -> Expr:
        return add(block, x, mul(block, sub(block, y, x), t))

    return pointwise("ResizeBilinear", body, (a, b, shares), "float32", cost=3)


LOWERINGS = {"ResizeNearestNeighbor": _lower_nearest, "ResizeBilinear": _lower_bilinear}
