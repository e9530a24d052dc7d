"""Constants of a model in the forms that its kernels read, made when the model is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.tvm import Kernel
from composite.hybrid.graph import Graph
from composite.kernels import host

_FEWEST = 256  # elements, as composite/runtime/kernels/packing.h
_DTYPES = (tf.int8, tf.uint8, tf.int16)  # beside floats


def candidates(graph: Graph, region: str) -> tuple[int, ...]:
    """Which operands of a region's node are constants that its kernel may have in another form."""
    return tuple(
        k for k, of in enumerate(graph.operands(region)) if _is_worth_it(graph.constants, of.node)
    )


def packed(graph: Graph, region: str, kernel: Kernel, library: Path) -> list[Any]:
    """What a kernel takes after its outputs, of the constants among a node's operands."""
    sources = {one.source for one in kernel.packed}
    inputs = [
        value_of(graph.constants[of.node]) if k in sources else np.empty(0)
        for k, of in enumerate(graph.operands(region))
    ]
    return host.pack(library, kernel.name, inputs, kernel.packed)


def value_of(constant: Any) -> Any:
    """The array of a constant's node."""
    return tf.make_ndarray(constant.attr["value"].tensor)


def _is_worth_it(constants: Mapping[str, Any], name: str) -> bool:
    if name not in constants:
        return False
    value = constants[name].attr["value"].tensor
    dtype, shape = tf.as_dtype(value.dtype), tf.TensorShape(value.tensor_shape)
    is_packable = dtype.is_floating or dtype in _DTYPES
    return is_packable and len(shape) >= 2 and shape.num_elements() >= _FEWEST
