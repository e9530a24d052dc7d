"""Warnings: what costs a call time although it has a kernel.

Not for: what keeps calls from kernels (refusals.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from composite.compiler.node_place import of_node
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir.tensor import Pointwise, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.read.obstacles import Obstacle, with_sizes
from composite.compiler.tvm.read.reader import read_function
from composite.linting.report import Finding
from composite.ops.op import CompositeOp

_WIDE = ("float64", "int64")


def of_declaration(op: CompositeOp) -> Iterator[Finding]:
    """What the declaration alone shows."""
    for attr in op.schema.attrs:
        if attr.type in ("float", "list(float)"):
            yield Finding(
                op.__name__,
                op.place,
                f"attribute {attr.name} is a float: each value of it is another kernel, which is "
                "compiled when the value first comes",
                f"where it varies from call to call, as a learning rate does, make it an input, "
                f'inputs=[..., "{attr.name}: float"]',
                refuses=False,
            )
    for arg in op.schema.inputs:
        if arg.dtype and tf.as_dtype(arg.dtype).name in _WIDE:
            dtype = tf.as_dtype(arg.dtype).name
            narrow = "int32" if dtype == "int64" else "float"
            yield Finding(
                op.__name__,
                op.place,
                f"input {arg.name} is always {dtype}: twice the bytes of 32 bits, and half as many "
                "elements in a vector",
                f'declare a choice, "{arg.name}: T{arg.name}" and derived_attrs=[..., '
                f'"T{arg.name}: {{{narrow}, {"int64" if narrow == "int32" else "double"}}}"]',
                refuses=False,
            )


def wide(library: Any, in_shapes: Sequence[Sequence[int | str]]) -> list[Obstacle]:
    """Where a function whose inputs have at most 32 bits computes in 64; it must have a kernel."""
    arguments = library.function[0].signature.input_arg
    if any(tf.as_dtype(arg.type).name in _WIDE for arg in arguments):
        return []
    try:
        function = read_function(library, *with_sizes(library, in_shapes))
    except NotCovered:
        return []
    nodes = {node.name: node for node in library.function[0].node_def}
    found: dict[Obstacle, None] = {}
    for tensor in topological(function.outputs):
        if tensor.dtype in _WIDE and tensor.shape and _computes(tensor):
            node = nodes.get(function.origins.get(tensor, ""))
            if node is not None:
                found[Obstacle(node.op, tensor.dtype, of_node(node))] = None
    return [*found]


def _computes(tensor: Tensor) -> bool:
    return bool(tensor.node.is_anchor or isinstance(tensor.node, Pointwise))
