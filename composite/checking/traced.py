"""A function of tensors as a graph of TensorFlow's ops: in float64, and with other roundings.

Composites in it are graphs of their bodies' ops, so that those are computed and moved one by one.

Not for: how far results may be apart (compare.py).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.ops import functions
from composite.reference import evaluate, floats
from composite.reference.source import Source
from composite.saving.portable import portable

Array = np.ndarray[Any, Any]


class Traced:
    """A function that was traced for arrays of some dtypes and shapes, and these arrays.

    Making one raises what the function raises without values, and ValueError if it captures what
    has no value, a variable for one.
    """

    def __init__(self, function: Callable[..., Any], arrays: Sequence[Array]) -> None:
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in arrays]
        concrete = tf.function(
            function, input_signature=specs, autograph=False
        ).get_concrete_function()
        captured = concrete.captured_inputs
        if any(functions.is_handle(x.dtype) for x in captured):
            raise ValueError("a handle is captured, which has no value")
        self._inputs = [*arrays, *(np.asarray(x.numpy()) for x in captured)]
        definition = concrete.graph.as_graph_def(add_shapes=False).library
        self._library = _of_stock_ops(
            FunctionDefLibrary(function=[concrete.function_def, *definition.function])
        )

    def in_double(self) -> list[Array]:
        """The results in float64. Raises where an op has no kernel for it."""
        double = functions.in_double(functions.body(self._library))
        wide = [floats.in_double(x) if floats.is_floating(x) else x for x in self._inputs]
        return [y.numpy() for y in evaluate.evaluate(double, wide)]

    def moved(self) -> Iterator[list[Array]]:
        """The results with those of each op as far off, up or down, as `reference.ulps` states."""
        return self._source.moved(self._inputs)

    def undetermined(self) -> list[Array]:
        """By result, where the order of a sum that overflows decides what it is."""
        return self._undetermined

    def has_empty_product(self) -> bool:
        """Whether an operand of a MatMul has no elements, as far as the ops run one by one."""
        if not any(node.op == "MatMul" for f in self._library.function for node in f.node_def):
            return False
        products: list[bool] = []

        def seen(step: evaluate.Step) -> None:
            if step.node.op == "MatMul":
                products.append(any(0 in x.shape for x in step.inputs))

        with contextlib.suppress(tf.errors.OpError, TypeError, ValueError):  # the call may raise
            evaluate.evaluate(functions.body(self._library), self._inputs, seen=seen)
        return any(products)

    @functools.cached_property
    def _source(self) -> Source:
        return Source(self._library)

    @functools.cached_property
    def _undetermined(self) -> list[Array]:
        return self._source.undetermined(self._inputs)


def traced(function: Callable[..., Any], arrays: Sequence[Array]) -> Traced | None:
    """A function of these arrays as a graph; None where it has none."""
    try:
        return Traced(function, arrays)
    except Exception:  # noqa: BLE001 - a body may need values, and raise anything without them
        return None


def in_double(graph: Traced | None, fallback: Sequence[Array]) -> list[Array]:
    """What a graph gives in float64; `fallback` without one, or where an op has no such kernel."""
    if graph is None:
        return list(fallback)
    try:
        return graph.in_double()
    except (tf.errors.OpError, TypeError, ValueError):
        return list(fallback)


def moved(graph: Traced | None) -> Iterator[list[Array]]:
    """What a graph gives with other roundings, as far as its ops run one by one."""
    if graph is None:
        return
    try:
        yield from graph.moved()
    except (tf.errors.OpError, TypeError, ValueError):
        return


def undetermined(graph: Traced | None) -> list[Array]:
    """Where results of a graph have no known value; none where its ops do not run one by one."""
    if graph is None:
        return []
    try:
        return graph.undetermined()
    except (tf.errors.OpError, TypeError, ValueError):
        return []


def _of_stock_ops(library: FunctionDefLibrary) -> FunctionDefLibrary:
    """The same functions with calls of stock ops for composites, where those can be expanded."""
    name = library.function[0].signature.name
    try:
        found = portable(GraphDef(library=library)).library
    except ValueError:
        return library
    order = sorted(found.function, key=lambda f: f.signature.name != name)  # the function is first
    return FunctionDefLibrary(function=order)
