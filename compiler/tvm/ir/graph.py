"""The lowered function, a DAG of tensors, and the tensors that lowerings make most.

It says what is computed, for the op table to build and the planner to read. It does not say in
which loops, nor hold anything of TVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from composite.compiler import op_traits
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import (
    Body,
    Constant,
    Node,
    Pointwise,
    Reshape,
    Tensor,
    Transpose,
)


@dataclass(frozen=True)
class Function:
    """What is to be compiled: parameters in order, and the tensors to return.

    ``minimums`` holds the least value of a symbol for which the function is right, where not 0.
    ``origins`` names the TF node that a tensor comes from, for people; no code depends on it.
    """

    parameters: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    minimums: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[Tensor, str] = field(default_factory=dict)


def pointwise(  # noqa: PLR0913 - a node and its result
    op: str,
    body: Body,
    operands: tuple[Tensor, ...],
    dtype: str,
    *,
    cost: int = 1,
    jumps: bool = False,
    shape: Shape | None = None,
) -> Tensor:
    """Return the element-wise result; ``shape`` only where it is larger than the operands give.

    ``jumps`` is for what is no op of TensorFlow's: of those :mod:`op_traits` tells.
    """
    jumps = jumps or op_traits.of(op).jumps
    full = dims.broadcast_shapes((*(t.shape for t in operands), *([shape] if shape else [])), op)
    return Tensor(full, dtype, Pointwise(op, operands, body, cost, jumps))


def constant(value: np.ndarray, dtype: str) -> Tensor:
    """Return the tensor of known elements; integers stay readable as sizes."""
    known = value.astype(object) if dtype in ("int32", "int64") else None
    return Tensor(tuple(value.shape), dtype, Constant(value), known)


def reshape(tensor: Tensor, shape: Shape) -> Tensor:
    """Return the elements under another shape of the same size.

    A reshape moves below an element-wise node that broadcasts nothing, so that the view reaches
    the buffer where it costs nothing, and the chain above stays one chain. What several tensors
    are made of stays one tensor under the new shape.
    """
    if shape == tensor.shape:
        return tensor
    if shape not in tensor.reshaped:
        tensor.reshaped[shape] = _reshaped(tensor, shape)
    return tensor.reshaped[shape]


def _reshaped(tensor: Tensor, shape: Shape) -> Tensor:
    known = tensor.known.reshape(shape) if tensor.known is not None else None
    node = tensor.node
    if isinstance(node, Reshape):
        return reshape(node.operand, shape)
    if isinstance(node, Constant):
        return Tensor(shape, tensor.dtype, Constant(node.value.reshape(shape)), known)
    if isinstance(node, Pointwise) and all(
        t.shape == tensor.shape or not t.shape for t in node.operands
    ):
        moved = tuple(reshape(t, shape) if t.shape else t for t in node.operands)
        return replace(tensor, shape=shape, node=replace(node, operands=moved), known=known)
    return Tensor(shape, tensor.dtype, Reshape(tensor), known)


def is_squeeze(shape: Shape, other: Shape) -> bool:
    """Return whether two shapes differ in dimensions of 1 alone."""
    return [d for d in shape if d != 1] == [d for d in other if d != 1]


def is_zero(tensor: Tensor) -> bool:
    """Return whether all elements are known to be zeros: repeated, cast or reshaped ones too."""
    while isinstance(tensor.node, Reshape) or _repeats(tensor.node):
        (tensor,) = tensor.node.operands
    return isinstance(tensor.node, Constant) and not np.any(tensor.node.value != 0)


def _repeats(node: Node) -> bool:
    """Return whether each element is one of the operand's, if that is 0."""
    return isinstance(node, Pointwise) and node.op in {"Fill", "Cast", "BroadcastTo", "Identity"}


def is_table(tensor: Tensor) -> bool:
    """Return whether the tensor is a constant of several values, which are written out."""
    node = tensor.node
    if not isinstance(node, Constant):
        return False
    flat = node.value.reshape(-1)
    return any(e is not flat[0] and e != flat[0] for e in flat)


def transpose(tensor: Tensor, permutation: tuple[int, ...]) -> Tensor:
    """Return the tensor with its dimensions permuted."""
    if permutation == tuple(range(tensor.rank)):
        return tensor
    if isinstance(tensor.node, Transpose):
        inner = tensor.node.permutation
        return transpose(tensor.node.operand, tuple(inner[p] for p in permutation))
    shape = tuple(tensor.shape[p] for p in permutation)
    known = tensor.known.transpose(permutation) if tensor.known is not None else None
    return Tensor(shape, tensor.dtype, Transpose(tensor, permutation), known)
