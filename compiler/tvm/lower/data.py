"""Constants, casts and views: ops that move or make values without arithmetic."""

from __future__ import annotations

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.dtypes import NARROW_FLOATS
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.static import known_dims, known_ints, known_tensor
from composite.compiler.tvm.math.numeric import cast
from composite.compiler.tvm.nodes.node import OpNode, dtype_name
from composite.compiler.tvm.nodes.tensor_proto import to_array
from composite.compiler.tvm.tir.block import Block

_MAX_CONSTANT = 4096
"""Elements of a constant tensor that a kernel may hold; larger ones are inputs' business."""


def _identity_body(_: Block, x: Expr) -> Expr:
    return x


def _lower_const(node: OpNode, _: list[Tensor]) -> list[Tensor]:
    proto = node.proto.attr["value"].tensor
    dtype = dtype_name(proto.dtype, "Const")
    value = to_array(proto)
    if value.size > _MAX_CONSTANT and not np.all(value == value.flat[0]):
        raise NotCovered(f"Const: {value.size} elements (at most {_MAX_CONSTANT})")
    if dtype in NARROW_FLOATS:
        value = value.astype(np.float32)
    return [graph.constant(value, dtype)]


def _lower_identity(_: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    return inputs


def _lower_cast(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (x,) = inputs
    source, target = node.dtype("SrcT"), node.dtype("DstT")
    if node.flag("Truncate"):
        raise NotCovered("Cast: Truncate=True")
    if source == target:
        return [x]
    if "float" in source and target in ("uint32", "uint64"):
        raise NotCovered(f"Cast: {source} to {target}, which differs where numbers do not fit")

    if x.known is not None and target in ("float32", "float64") and _is_one_number(x.known):
        return [graph.constant(x.known.astype(target), target)]

    result = converted(x, source, target)
    if x.known is not None and target in ("int32", "int64"):
        return [Tensor(result.shape, target, result.node, x.known)]
    return [result]


def converted(x: Tensor, source: str, target: str) -> Tensor:
    """Return the numbers of a dtype in another one."""

    def body(block: Block, value: Expr) -> Expr:
        return cast(block, value, source, target)

    return pointwise("Cast", body, (x,), target, cost=2)


def _is_one_number(known: np.ndarray) -> bool:
    return known.size == 1 and not isinstance(known.flat[0], dims.Poly)


def filled(value: float, shape: Shape, dtype: str) -> Tensor:
    """Return a tensor of one repeated value."""
    return filled_like(graph.constant(np.asarray(value), dtype), shape)


def filled_like(value: Tensor, shape: Shape) -> Tensor:
    """Return a tensor that repeats the one element of another."""
    return pointwise("Fill", _identity_body, (value,), value.dtype, cost=0, shape=shape)


def _lower_like(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (x,) = inputs
    return [filled(1 if node.op == "OnesLike" else 0, x.shape, x.dtype)]


def _lower_fill(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    shape = known_dims(node, inputs[0], "shape")
    value = inputs[1]
    node.require(value.dtype)
    for size in shape:
        node.at_least(size, 0, f"a dimension of {size}")
    result = filled_like(value, shape)
    sizes = [d for d in shape if isinstance(d, int)]
    if value.known is None or len(sizes) < len(shape) or len(shape) > 1:
        return [result]
    known = np.full(sizes, value.known, dtype=object)  # a vector of sizes
    return [Tensor(result.shape, value.dtype, result.node, known)]


def broadcast(tensor: Tensor, shape: Shape) -> Tensor:
    """Return the tensor repeated to a shape that it broadcasts to."""
    if tensor.shape == shape:
        return tensor
    return pointwise("BroadcastTo", _identity_body, (tensor,), tensor.dtype, cost=0, shape=shape)


def _lower_broadcast_to(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = inputs[0]
    shape = known_dims(node, inputs[1], "shape")
    if dims.broadcast_shapes((tensor.shape, shape), node.op) != shape:
        raise NotCovered(f"{node.op}: {tensor.shape} to {shape}")
    return [broadcast(tensor, shape)]


def _lower_tile(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Repeat along a new dimension in front of each dimension, and merge the two."""
    tensor = inputs[0]
    multiples = known_dims(node, inputs[1], "multiples")
    if len(multiples) != tensor.rank:
        raise NotCovered(f"{node.op}: {len(multiples)} multiples of rank {tensor.rank}")
    if tensor.known is not None:
        counts = known_ints(node, inputs[1], "multiples")
        return [known_tensor(np.tile(tensor.known, counts), tensor.dtype)]
    apart: list[Dim] = []
    repeated: list[Dim] = []
    for times, size in zip(multiples, tensor.shape, strict=True):
        if times != 1 and size != 1:
            apart.append(1)
            repeated.append(times)
        apart.append(size)
        repeated.append(times if size == 1 else size)
    together = tuple(t * s for t, s in zip(multiples, tensor.shape, strict=True))
    source = graph.reshape(tensor, tuple(apart))
    if tuple(repeated) == source.shape:
        return [tensor]
    many = pointwise(
        node.op, _identity_body, (source,), tensor.dtype, cost=0, shape=tuple(repeated)
    )
    return [graph.reshape(many, together)]


def _lower_reshape(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = inputs[0]
    target = list(known_dims(node, inputs[1], "shape"))
    total = dims.product(tensor.shape)
    if target.count(-1) > 1:
        raise NotCovered("Reshape: more than one -1")
    if -1 in target:
        rest = dims.product(d for d in target if d != -1)
        missing: Dim | None = dims.divide(total, rest) if rest != 0 else None
        if missing is None:
            raise NotCovered(f"Reshape: {total} elements are not known to fill {target}")
        target[target.index(-1)] = missing
    dims.require_equal(total, dims.product(target), "Reshape")
    return [graph.reshape(tensor, tuple(target))]


def _lower_expand_dims(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = inputs[0]
    (axis,) = known_ints(node, inputs[1], "axis")
    if not -tensor.rank - 1 <= axis <= tensor.rank:
        raise NotCovered(f"ExpandDims: axis {axis} of a tensor of rank {tensor.rank}")
    axis %= tensor.rank + 1
    return [graph.reshape(tensor, (*tensor.shape[:axis], 1, *tensor.shape[axis:]))]


def _lower_squeeze(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (tensor,) = inputs
    axes = {a % max(tensor.rank, 1) for a in node.numbers("squeeze_dims")}
    if not axes:
        if any(not isinstance(d, int) for d in tensor.shape):
            raise NotCovered("Squeeze: whether a dimension of unknown size is 1 is not known")
        axes = {i for i, d in enumerate(tensor.shape) if d == 1}
    for axis in axes:
        dims.require_equal(tensor.shape[axis], 1, "Squeeze")
    kept = tuple(d for i, d in enumerate(tensor.shape) if i not in axes)
    return [graph.reshape(tensor, kept)]


def _lower_transpose(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor = inputs[0]
    permutation = tuple(p % max(tensor.rank, 1) for p in known_ints(node, inputs[1], "permutation"))
    if sorted(permutation) != list(range(tensor.rank)):
        raise NotCovered(f"Transpose: permutation {permutation} of rank {tensor.rank}")
    return [graph.transpose(tensor, permutation)]


def _lower_ensure_shape(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Return the tensor if its shape is known to be the required one."""
    (tensor,) = inputs
    shape = node.proto.attr["shape"].shape
    if not shape.unknown_rank:
        wanted = [d.size for d in shape.dim]
        if len(wanted) != tensor.rank:
            raise NotCovered(f"EnsureShape: rank {tensor.rank}, not {len(wanted)}")
        for have, want in zip(tensor.shape, wanted, strict=True):
            if want >= 0:
                dims.require_equal(have, want, "EnsureShape")
    return [tensor]


LOWERINGS = {
    "Const": _lower_const,
    "Identity": _lower_identity,
    "IdentityN": _lower_identity,
    "StopGradient": _lower_identity,
    "PreventGradient": _lower_identity,
    "Snapshot": _lower_identity,
    "Cast": _lower_cast,
    "ZerosLike": _lower_like,
    "OnesLike": _lower_like,
    "Fill": _lower_fill,
    "BroadcastTo": _lower_broadcast_to,
    "Tile": _lower_tile,
    "Reshape": _lower_reshape,
    "ExpandDims": _lower_expand_dims,
    "Squeeze": _lower_squeeze,
    "Transpose": _lower_transpose,
    "EnsureShape": _lower_ensure_shape,
}
