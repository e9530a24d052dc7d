"""Arithmetic on shapes: ops whose operands are known now, and which leave no code behind.

A value is an object array of ints and sizes. The same ops on tensors that are data are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Constant, Parameter, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.nodes.node import OpNode

Known = np.ndarray
_INTEGERS = ("int32", "int64")


def known_dims(node: OpNode, tensor: Tensor, what: str) -> Shape:
    """Return the elements of a vector of sizes.

    Where the values of scalar inputs would tell them, the answer says of which.
    """
    return _known(node, tensor, what, _scalar_inputs(tensor))


def known_places(node: OpNode, tensor: Tensor, what: str) -> Shape:
    """Return the elements of a vector of places.

    No answer asks for the value of an input: places vary from call to call, and a kernel for each
    of them would be one for a few calls.
    """
    return _known(node, tensor, what, ())


def _known(node: OpNode, tensor: Tensor, what: str, sizes: Sequence[int]) -> Shape:
    if tensor.known is None:
        raise NotCovered(f"{node.op}: its {what} is computed at run time", sizes=sizes)
    return tuple(d if isinstance(d, dims.Poly) else int(d) for d in tensor.known.reshape(-1))


def _scalar_inputs(tensor: Tensor) -> list[int]:
    """Return the inputs that a tensor is made of if they are scalars, and integers; else none."""
    if tensor.known is not None:
        return []
    read = [t for t in topological([tensor]) if isinstance(t.node, Parameter)]
    if any(t.shape or t.dtype not in _INTEGERS for t in read):
        return []
    return sorted({t.node.index for t in read if isinstance(t.node, Parameter)})


def known_ints(node: OpNode, tensor: Tensor, what: str) -> tuple[int, ...]:
    """Return the elements of a vector of ints."""
    values = known_places(node, tensor, what)
    if not all(isinstance(v, int) for v in values):
        raise NotCovered(f"{node.op}: its {what} depends on an unknown size")
    return tuple(int(v) for v in values if isinstance(v, int))


def constant_values(node: OpNode, tensor: Tensor, what: str) -> list[Any]:
    """Return the elements of a constant of any dtype."""
    if not isinstance(tensor.node, Constant):
        raise NotCovered(f"{node.op}: its {what} is computed at run time")
    return list(tensor.node.value.reshape(-1))


def as_known(tensor: Tensor) -> Tensor:
    """Return a tensor whose elements are known as the constant that it is."""
    if tensor.known is None or isinstance(tensor.node, Constant):
        return tensor
    return known_tensor(tensor.known, tensor.dtype)


def known_tensor(value: Any, dtype: str) -> Tensor:
    """Return the constant of known elements."""
    array = np.asarray(value, dtype=object)
    return Tensor(tuple(array.shape), dtype, Constant(array), array)


def known_vector(elements: list[Dim] | Shape) -> Known:
    """Return sizes as an array."""
    array = np.empty(len(elements), dtype=object)
    array[:] = list(elements)
    return array


def _output_dtype(node: OpNode, key: str) -> str:
    return "int64" if key in node.proto.attr and node.dtype(key) == "int64" else "int32"


def _lower_shape(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    dtype = _output_dtype(node, "out_type")
    return [known_tensor(known_vector(t.shape), dtype) for t in inputs]


def _lower_size(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    return [known_tensor(dims.product(inputs[0].shape), _output_dtype(node, "out_type"))]


def _lower_rank(_: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    return [known_tensor(inputs[0].rank, "int32")]


def _on_known(
    evaluate: Callable[[OpNode, list[Known]], Any],
) -> Callable[[OpNode, list[Tensor]], list[Tensor]]:
    """Return the lowering of an op that is evaluated now, if all it reads is known."""

    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        node.require(inputs[-1].dtype, *_INTEGERS)
        known = [t.known for t in inputs if t.known is not None]
        if len(known) != len(inputs):
            raise NotCovered(f"{node.op}: covered on shapes only, not on data")
        results = evaluate(node, known)
        results = results if isinstance(results, list) else [results]
        return [known_tensor(r, inputs[0].dtype) for r in results]

    return lower


def _dynamic_stitch(_: OpNode, values: list[Known]) -> Known:
    """Put the elements of some vectors at the indices that others hold; the last write wins."""
    count = len(values) // 2
    found: dict[int, Any] = {}
    for places, elements in zip(values[:count], values[count:], strict=True):
        if elements.shape != places.shape:
            raise NotCovered("DynamicStitch: covered on vectors of sizes only")
        found.update(zip(map(int, places.reshape(-1)), elements.reshape(-1), strict=True))
    if sorted(found) != list(range(len(found))):
        raise NotCovered("DynamicStitch: elements that nothing says")
    return known_vector([found[i] for i in range(len(found))])


def _invert(_: OpNode, values: list[Known]) -> Known:
    return np.argsort(values[0].astype(np.int64)).astype(object)


def _broadcast_args(node: OpNode, values: list[Known]) -> Known:
    return known_vector(dims.broadcast_shapes([tuple(v) for v in values], node.op))


def _broadcast_gradient_args(node: OpNode, values: list[Known]) -> list[Known]:
    """Return for each of two shapes the axes over which its gradient is summed."""
    shapes = [tuple(v) for v in values]
    full = dims.broadcast_shapes(shapes, node.op)
    results = []
    for shape in shapes:
        padded = (1,) * (len(full) - len(shape)) + shape
        missing = len(full) - len(shape)
        other = [i for i, d in enumerate(padded) if d == 1]
        # TF also sums where both are 1; over one element that changes nothing.
        results.append(known_vector([i for i in other if full[i] != 1 or i < missing]))
    return results


def _lower_list_diff(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Return what is in one vector and not in the other, and where."""
    node.require(inputs[0].dtype, *_INTEGERS)
    values, others = (known_ints(node, t, "list") for t in inputs)
    places = [i for i, v in enumerate(values) if v not in others]
    found = known_vector([values[i] for i in places])
    return [
        known_tensor(found, inputs[0].dtype),
        known_tensor(known_vector(list(places)), _output_dtype(node, "out_idx")),
    ]


LOWERINGS = {
    "Shape": _lower_shape,
    "ShapeN": _lower_shape,
    "Size": _lower_size,
    "Rank": _lower_rank,
    "ListDiff": _lower_list_diff,
    "DynamicStitch": _on_known(_dynamic_stitch),
    "InvertPermutation": _on_known(_invert),
    "BroadcastArgs": _on_known(_broadcast_args),
    "BroadcastGradientArgs": _on_known(_broadcast_gradient_args),
}
