"""Whether a call for one element is, with a batch dimension before it, the call for all elements.

So it is where the expansion for the batch is the expansion for the element, op for op, and each op
takes the elements of its inputs one by one, broadcasting as NumPy does. Then one node, and the one
kernel that covers it, computes the batch.

Not for ops that are batched otherwise (a matrix product, a reduction): those change.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary

from composite.compiler import op_traits


def takes_a_batch(
    element: FunctionDefLibrary,
    batch: FunctionDefLibrary,
    shapes: Sequence[tf.TensorShape],
    mapped: Sequence[bool],
) -> bool:
    """Whether the op of these expansions can be given the batch.

    Args:
        element: the expansion for one element.
        batch: the expansion with the batch dimension in front of each input that is mapped over.
        shapes: of the inputs for one element.
        mapped: which inputs are mapped over, at least one of them.
    """
    ranks = {shape.rank for shape, is_mapped in zip(shapes, mapped, strict=True) if is_mapped}
    rank = ranks.pop()
    # Broadcasting aligns last dims: a batch of lower rank would have its first dim elsewhere.
    if ranks or rank is None or any(s.rank is None or s.rank > rank for s in shapes):
        return False
    function = element.function[0]
    if len(element.function) > 1 or not all(_is_elementwise(n, rank) for n in function.node_def):
        return False
    return _same(function, batch.function[0]) and _all_depend(function, mapped)


def _is_elementwise(node: tf.compat.v1.NodeDef, rank: int) -> bool:
    if node.op == "Const":
        return len(node.attr["value"].tensor.tensor_shape.dim) <= rank
    if node.op in ("Equal", "NotEqual") and "incompatible_shape_error" in node.attr:
        return bool(node.attr["incompatible_shape_error"].b)
    return op_traits.of(node.op).elementwise


def _same(one: FunctionDef, other: FunctionDef) -> bool:
    texts = []
    for function in (one, other):
        unnamed = FunctionDef()
        unnamed.CopyFrom(function)
        unnamed.signature.name = ""
        texts.append(unnamed.SerializeToString(deterministic=True))
    return texts[0] == texts[1]


def _all_depend(function: FunctionDef, mapped: Sequence[bool]) -> bool:
    """Whether each output is computed from an input that is mapped over, and so has the batch."""
    arguments = zip(function.signature.input_arg, mapped, strict=True)
    depend = {argument.name for argument, is_mapped in arguments if is_mapped}
    before = -1
    while before != len(depend):  # the nodes stand in any order
        before = len(depend)
        for node in function.node_def:
            if any(text.split(":")[0] in depend for text in node.input):
                depend.add(node.name)
    return all(value.split(":")[0] in depend for value in function.ret.values())
