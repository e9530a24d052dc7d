"""Whether a kernel gives the bits of its expansion whatever the inputs: by what the ops of it are.

Data that is only moved keeps its bits, and arithmetic of integers has one result. Anything computed
with floating numbers is rounded, and to what depends on the order: no check of some inputs can say
that it never differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

# Ops that a kernel may hold which do nothing with numbers but move them.
_MOVES = """Const Identity StopGradient PreventGradient Snapshot EnsureShape Reshape ExpandDims
    Squeeze Transpose Tile BroadcastTo Fill ZerosLike OnesLike Pack ConcatV2 StridedSlice GatherV2
    Select SelectV2 Shape ShapeN Size Rank PartitionedCall StatefulPartitionedCall"""


def is_exact(library: Any) -> bool:
    """Whether every op of an expansion (FunctionDefLibrary) moves data or has no floating number.

    The functions that it calls are in the library as well.
    """
    moves = frozenset(_MOVES.split())
    return all(
        node.op in moves or not any(map(_rounds, _dtypes(node)))
        for function in library.function
        for node in function.node_def
    )


def _dtypes(node: Any) -> Iterable[int]:
    for value in node.attr.values():
        yield value.type
        yield from value.list.type
        if value.HasField("tensor"):
            yield value.tensor.dtype


def _rounds(dtype: int) -> bool:
    return dtype != 0 and (tf.as_dtype(dtype).is_floating or tf.as_dtype(dtype).is_complex)
