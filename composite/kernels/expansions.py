"""The expansion of a request for a kernel, and which of its inputs never change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.binding import native
from composite.binding.records import CONSTANTS, NodeDef, attr_value, call_record
from composite.kernels import shapes


def expand(request: NodeDef, dims: Sequence[shapes.Dims]) -> Any:
    """The expansion (FunctionDefLibrary) of a request's call; symbols are unknown dims."""
    asked = call_record(request.op, request.attr)
    known = [tf.TensorShape([d if isinstance(d, int) else None for d in s]) for s in dims]
    asked.attr["_in_shapes"].CopyFrom(attr_value(known))
    return FunctionDefLibrary.FromString(native.call("composite_expand", asked))


def constants_of(request: NodeDef) -> tuple[int, ...]:
    """The inputs of a request that never change."""
    return tuple(request.attr[CONSTANTS].list.i) if CONSTANTS in request.attr else ()
