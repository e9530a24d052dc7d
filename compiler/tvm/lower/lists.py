"""Lists of tensors: what tf.TensorArray is made of, in loops that set an element a trip."""

from __future__ import annotations

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.lists import (
    UNKNOWN,
    GetRow,
    KnownRows,
    Missing,
    Rest,
    SetRow,
    Unset,
    fits,
)
from composite.compiler.tvm.ir.loop import Leaf
from composite.compiler.tvm.ir.tensor import Constant, Tensor
from composite.compiler.tvm.lower.data import filled
from composite.compiler.tvm.lower.static import (
    known_dims,
    known_places,
    known_tensor,
    known_vector,
)
from composite.compiler.tvm.nodes.node import OpNode


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


def _lower_empty(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    shape = _element_shape(node, inputs[0]) or ()
    return [Tensor((0, *shape), node.dtype("element_dtype"), Unset())]


def _lower_from_tensor(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = inputs[0]
    node.require(tensor.dtype)
    if not tensor.rank:
        raise NotCovered("TensorListFromTensor: a scalar")
    return [tensor]


def _place(node: OpNode, array: Tensor, index: Tensor) -> Dim:
    """Return the index of an element, which must be known to exist."""
    (place,) = known_places(node, index, "index")
    node.within(place, array.shape[0], f"element {place} of {array.shape[0]}")
    return place


def _lower_set_item(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array, index, item = inputs
    node.require(item.dtype)
    if not fits(item.shape, array.shape[1:]):
        raise NotCovered(f"{node.op}: a {item.shape} among elements of {array.shape[1:]}")
    return [_with_row(node, array, _place(node, array, index), item)]


def _with_row(node: OpNode, array: Tensor, place: Dim, item: Tensor) -> Tensor:
    """Return a list with another element at ``place``, or one more if the list ends there.

    What a trip of a loop passes on is for the loop to write; any other list is made here.
    """
    held, count = array.node, array.shape[0]
    if isinstance(held, Leaf | SetRow):
        size = count + 1 if place == count else count
        return Tensor((size, *item.shape), item.dtype, SetRow(array, place, item))
    if isinstance(held, Rest | KnownRows):
        raise NotCovered(f"{node.op}: of a list that is being written")
    after: Dim = 0 if place == count else count - place - 1
    row = graph.reshape(item, (1, *item.shape))
    parts = [_rows(array, 0, place, item), row, _rows(array, place + 1, after, item)]
    return views.concat(parts, 0, node.op)


def _rows(array: Tensor, start: Dim, count: Dim, item: Tensor) -> Tensor:
    """Return ``count`` elements of a list whose elements are like ``item``; unset ones are 0."""
    shape = (count, *item.shape)
    if isinstance(array.node, Unset):
        return filled(0, shape, item.dtype)
    return views.sliced(array, (start, *(0,) * item.rank), shape)


def _lower_get_item(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array, index = inputs[:2]
    return [_row(node, array, _place(node, array, index))]


def _row(node: OpNode, array: Tensor, place: Dim) -> Tensor:
    """Return an element of a list."""
    held = array.node
    if isinstance(held, Unset | SetRow):
        raise NotCovered(f"{node.op}: of a list that is being written")
    if isinstance(held, Leaf):
        return Tensor(array.shape[1:], array.dtype, GetRow(array, place))
    if isinstance(held, KnownRows):
        put = np.frompyfunc(lambda d: dims.substitute(d, held.counter, place), 1, 1)
        return known_tensor(put(held.value), array.dtype)
    return views.select(array, 0, place)


def _lower_push_back(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array, item = inputs
    node.require(item.dtype)
    return [_with_row(node, array, array.shape[0], item)]


def _lower_pop_back(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array = inputs[0]
    node.require(array.dtype)
    base = array.node.base if isinstance(array.node, Rest) else array
    place = array.shape[0] - 1
    node.at_least(place, 0, f"the last of {array.shape[0]} elements")
    rest = Tensor((place, *array.shape[1:]), array.dtype, Rest(base))
    return [rest, _row(node, base, place)]


def _lower_stack(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    array, told = inputs
    if isinstance(array.node, SetRow | Leaf | Rest | KnownRows):
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


def _lower_element_shape(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    shape = inputs[0].shape[1:]
    if UNKNOWN in shape:
        raise NotCovered(f"{node.op}: of elements that are not set yet")
    return [known_tensor(known_vector(shape), node.dtype("shape_type"))]


def _lower_optional(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower an optional of one tensor as the tensor that it holds."""
    if len(inputs) != 1:
        raise NotCovered(f"{node.op}: {len(inputs)} tensors")
    return inputs


def _lower_no_optional(_node: OpNode, _inputs: list[Tensor]) -> list[Tensor]:
    return [Tensor((), "bool", Missing())]


def _lower_optional_value(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    if isinstance(inputs[0].node, Missing):
        raise NotCovered(f"{node.op}: an optional without a value (TF's op reports it)")
    return inputs


LOWERINGS = {
    "EmptyTensorList": _lower_empty,
    "TensorListReserve": _lower_reserve,
    "TensorListFromTensor": _lower_from_tensor,
    "TensorListSetItem": _lower_set_item,
    "TensorListGetItem": _lower_get_item,
    "TensorListPushBack": _lower_push_back,
    "TensorListPopBack": _lower_pop_back,
    "TensorListStack": _lower_stack,
    "TensorListLength": _lower_length,
    "TensorListElementShape": _lower_element_shape,
    "OptionalFromValue": _lower_optional,
    "OptionalNone": _lower_no_optional,
    "OptionalGetValue": _lower_optional_value,
}
