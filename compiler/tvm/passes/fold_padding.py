"""Have the windows of convolutions reach over the border instead of into zeros put around an image.

What a body pads with zeros, as Keras does in front of layers of stride 2, would be another image.
Windows outside of an image read zeros, too, and without it. Not for pools, whose windows leave out
what is outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from composite.compiler.tvm.ir.anchors import Convolution
from composite.compiler.tvm.ir.dims import static_shape
from composite.compiler.tvm.ir.graph import Function, is_zero, reshape
from composite.compiler.tvm.ir.tensor import Reshape, Tensor
from composite.compiler.tvm.ir.views import Concat
from composite.compiler.tvm.passes.rewriting import rewritten

_SPATIAL = (1, 2)  # of [N, H, W, C]


def fold_padding(function: Function) -> Function:
    """Return the function with convolutions of images that nothing was put around."""

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor | None:
        node = tensor.node
        if not isinstance(node, Convolution):
            return None
        image, (top, left) = _unpadded(made[node.image])
        if image is made[node.image]:
            return None
        before = (node.window.before[0] + top, node.window.before[1] + left)
        window = replace(node.window, before=before)
        return replace(
            tensor, node=replace(node, image=image, filter=made[node.filter], window=window)
        )

    return rewritten(function, rule)


def _unpadded(image: Tensor) -> tuple[Tensor, tuple[int, int]]:
    """Return what zeros were put around, and how many in front of its rows and columns."""
    before = dict.fromkeys(_SPATIAL, 0)
    while (joined := _joined(image)) is not None and joined[1] in _SPATIAL:
        parts, axis = joined
        others = [i for i, part in enumerate(parts) if not is_zero(part)]
        if len(others) != 1:
            break
        sizes = static_shape(tuple(part.shape[axis] for part in parts[: others[0]]))
        if sizes is None:
            break
        before[axis] += sum(sizes)
        image = parts[others[0]]
    return image, (before[1], before[2])


def _joined(image: Tensor) -> tuple[Sequence[Tensor], int] | None:
    """Return the images that lie one after the other in an image, and along which axis.

    An image of one row may be another shape of lines ``[N, W, C]``, as convolutions of lines have.
    """
    node = image.node
    if isinstance(node, Concat):
        return node.operands, node.axis
    if not isinstance(node, Reshape):
        return None
    lines = node.operand
    one_row = (*lines.shape[:1], 1, *lines.shape[1:])
    if not isinstance(lines.node, Concat) or image.shape != one_row:
        return None
    parts = [reshape(t, (t.shape[0], 1, *t.shape[1:])) for t in lines.node.operands]
    return parts, lines.node.axis + 1
