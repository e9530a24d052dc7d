"""Whether a kernel gives the bits of its expansion whatever the inputs: by what the ops of it are.

Data that is only moved keeps its bits, and arithmetic of integers has one result. Anything computed
with floating numbers is rounded, and to what depends on the order: no check of some inputs can say
that it never differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from composite.compiler import op_traits
from composite.compiler.op_traits import Runs


def is_exact(library: Any) -> bool:
    """Whether every op of an expansion (FunctionDefLibrary) moves data or has no floating number.

    The functions that it calls are in the library as well.
    """
    return all(
        _keeps_bits(node.op) or not any(map(_rounds, _dtypes(node)))
        for function in library.function
        for node in function.node_def
    )


def _keeps_bits(op: str) -> bool:
    traits = op_traits.of(op)
    return traits.moves_data or traits.runs is Runs.CALL


def _dtypes(node: Any) -> Iterable[int]:
    for value in node.attr.values():
        yield value.type
        yield from value.list.type
        if value.HasField("tensor"):
            yield value.tensor.dtype


def _rounds(dtype: int) -> bool:
    return dtype != 0 and (tf.as_dtype(dtype).is_floating or tf.as_dtype(dtype).is_complex)
