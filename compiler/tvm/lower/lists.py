"""Lists of tensors: what tf.TensorArray is made of, in loops that set an element a trip."""

from __future__ import annotations

from .. import dims, views
from ..dims import Dim, Poly, Shape
from ..errors import NotCovered
from ..graph import Constant, Tensor
from ..lists import UNKNOWN, SetRow, Unset, fits
from ..loop import Leaf
from ..node import OpNode
from .data import filled
from .static import known_dims, known_tensor


def _element_shape(node: OpNode, tensor: Tensor) -> Shape | None:
    """Return the shape that elements are said to have; None if nothing is said."""
    if not tensor.shape:
        if isinstance(tensor.node, Constant) and tensor.node.value == UNKNOWN:
            return None
        raise NotCovered(f"{node.op}: an element_shape that is computed at run time")
    return known_dims(node, tensor, "element_shape")


def _lower_reserve(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    shape = _element_shape(node, inputs[0])
    if shape is None:
        raise NotCovered("TensorListReserve: elements of unknown rank")
    (count,) = known_dims(node, inputs[1], "num_elements")
    return [Tensor((count, *shape), node.dtype("element_dtype"), Unset())]


def _lower_from_tensor(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = inputs[0]
    node.require(tensor.dtype)
    if not tensor.rank:
        raise NotCovered("TensorListFromTensor: a scalar")
    return [tensor]


def _place(node: OpNode, array: Tensor, index: Tensor) -> Dim:
    """Return which element is meant; it must be known to exist."""
    (place,) = known_dims(node, index, "index")
    count = array.shape[0]
    node.at_least(place, 0, f"element {place} of {count}")
    rest = count - 1 - place if isinstance(count, Poly) else place * -1 + (count - 1)
    node.at_least(rest, 0, f"element {place} of {count}")
    return place


def _lower_set_item(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array, index, item = inputs
    node.require(item.dtype)
    if not fits(item.shape, array.shape[1:]):
        raise NotCovered(f"{node.op}: a {item.shape} among elements of {array.shape[1:]}")
    place = _place(node, array, index)
    shape = (array.shape[0], *item.shape)
    return [Tensor(shape, item.dtype, SetRow(array, place, item))]


def _lower_get_item(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array, index, _ = inputs
    if isinstance(array.node, Unset | SetRow | Leaf):
        raise NotCovered(f"{node.op}: of a list that is being written")
    return [views.select(array, 0, _place(node, array, index))]


def _lower_stack(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array, told = inputs
    if isinstance(array.node, SetRow | Leaf):
        raise NotCovered(f"{node.op}: of a list that is being written")
    number = node.number("num_elements", -1)
    if number not in (-1, array.shape[0]):
        raise NotCovered(f"{node.op}: whether there are {number} elements is not known")
    shape = _element_shape(node, told)
    if isinstance(array.node, Unset):
        known = tuple(shape or array.shape[1:])
        if UNKNOWN in known:
            raise NotCovered(f"{node.op}: the shape of elements that are never set")
        return [filled(0, (array.shape[0], *known), array.dtype)]
    if shape is not None and not fits(array.shape[1:], shape):
        raise NotCovered(f"{node.op}: elements of {array.shape[1:]} as {shape}")
    return [array]


def _lower_length(_: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    return [known_tensor(dims.product(inputs[0].shape[:1]), "int32")]


LOWERINGS = {
    "TensorListReserve": _lower_reserve,
    "TensorListFromTensor": _lower_from_tensor,
    "TensorListSetItem": _lower_set_item,
    "TensorListGetItem": _lower_get_item,
    "TensorListStack": _lower_stack,
    "TensorListLength": _lower_length,
}
