"""Dtypes and shapes of a graph's values, with dims in terms of the inputs' unknown ones.

Shapes are inferred twice, at sizes that no model has by itself; what fits both is the dim. Not for:
what regions compute, whose kernels say their shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from composite.editing.scope import Edge
from composite.hybrid.stated_shapes import Shapes, state
from composite.kernels import shapes
from composite.ops import functions

_MOST = len(shapes.PROBES[0])  # symbols

Dims = tuple[int | str, ...]
"""Sizes; a text is an expression of symbols in postfix, "s0 2 *"."""


@dataclass(frozen=True)
class Value:
    """What is known of a value.

    Attributes:
        dtype: its dtype.
        dims: its sizes, None where the rank is not known; a symbol of its own for a size of which
            nothing is known.
    """

    dtype: tf.DType
    dims: Dims | None


class Values:
    """The values of a frozen function.

    Attributes:
        inputs: those that the function is given.
    """

    def __init__(
        self, library: Any, specs: Sequence[tf.TensorSpec], stated: Shapes | None = None
    ) -> None:
        """Of function[0] of a library. ValueError if it does not take inputs of these specs."""
        self._source = functions.body(library)
        state(self._source.graph_def, stated or {})
        self.inputs, cases, graphs = self._probed(specs)
        self._cases, self._graphs = cases, graphs
        self._count = len(cases[0])
        self._known: dict[Edge, Value] = {}

    def symbol(self) -> str:
        """A symbol of which nothing is known."""
        self._count += 1
        return f"s{self._count - 1}"

    def of(self, value: Edge) -> Value:
        """The dtype and dims of an output of a node that the function has."""
        if value not in self._known:
            self._known[value] = self._inferred(value)
        return self._known[value]

    def define(self, value: Edge, known: Value) -> None:
        """States what an output is: of a region's node, which the function does not have."""
        self._known[value] = known

    def _probed(
        self, specs: Sequence[tf.TensorSpec]
    ) -> tuple[list[Value], list[dict[str, int]], list[tf.Graph]]:
        """The inputs, the symbols' sizes, and the graph with inputs of these sizes."""
        attempts = [_symbols_of_their_own(specs), _one_batch(specs)]
        for k, inputs in enumerate(attempts):
            names = shapes.symbols([value.dims for value in inputs if value.dims is not None])
            if len(names) > _MOST:
                raise ValueError(
                    f"{len(names)} dims of its inputs are not known, and at most {_MOST} may be: "
                    "give tf.TensorSpecs that state some"
                )
            cases = [dict(zip(names, sizes, strict=False)) for sizes in shapes.PROBES]
            try:
                return inputs, cases, [self._at(inputs, sizes) for sizes in cases]
            except ValueError as error:
                if k == len(attempts) - 1:
                    raise ValueError(
                        f"no shapes can be inferred for inputs {_told(specs)}: {error}; give "
                        "tf.TensorSpecs, or the inputs of a call, that state more dims"
                    ) from error
        raise AssertionError("the last attempt returns or raises")

    def _at(self, inputs: Sequence[Value], sizes: Mapping[str, int]) -> tf.Graph:
        """The graph in which the inputs have these sizes."""
        graph = tf.Graph()
        with graph.as_default():
            given = {}
            for name, value in zip(self._source.inputs, inputs, strict=True):
                exact = None if value.dims is None else shapes.substitute([value.dims], sizes)[0]
                given[f"{name}:0"] = tf.compat.v1.placeholder(value.dtype, exact, f"given/{name}")
            for node in self._source.graph_def.node:
                if node.op == "AnonymousHashTable":  # does not say the shapes of its values
                    dtypes = {key: node.attr[key].type for key in ("key_dtype", "value_dtype")}
                    given[f"{node.name}:0"] = tf.raw_ops.AnonymousMutableHashTable(**dtypes)
            tf.graph_util.import_graph_def(self._source.graph_def, input_map=given, name="")
        return graph

    def _inferred(self, value: Edge) -> Value:
        name = f"{value.node}:{value.output}"
        if value.node in self._source.inputs:
            return self.inputs[self._source.inputs.index(value.node)]
        found = [graph.get_tensor_by_name(name) for graph in self._graphs]
        ranks = {tensor.shape.rank for tensor in found}
        if len(ranks) != 1 or None in ranks:
            return Value(found[0].dtype, None)
        axes = zip(*(tensor.shape.as_list() for tensor in found), strict=True)
        return Value(found[0].dtype, tuple(self._dim(sizes) for sizes in axes))

    def _dim(self, sizes: tuple[int | None, ...]) -> int | str:
        known = [size for size in sizes if size is not None]
        text = shapes.expression(known, self._cases) if len(known) == len(sizes) else None
        if text is None:
            return self.symbol()
        return int(text) if text.isdigit() else text


def _symbols_of_their_own(specs: Sequence[tf.TensorSpec]) -> list[Value]:
    """Each unknown dim is a symbol."""
    count = 0

    def dim(size: int | None) -> int | str:
        nonlocal count
        if size is not None:
            return size
        count += 1
        return f"s{count - 1}"

    return [
        Value(spec.dtype, None if spec.shape.rank is None else tuple(dim(d) for d in spec.shape))
        for spec in specs
    ]


def _one_batch(specs: Sequence[tf.TensorSpec]) -> list[Value]:
    """The same, but that unknown first dims are one symbol: a batch."""
    found = _symbols_of_their_own(specs)
    firsts = [v.dims[0] for v in found if v.dims and isinstance(v.dims[0], str)]
    texts = [d for v in found if v.dims for d in v.dims if isinstance(d, str)]
    kept = [text for text in texts if text not in firsts[1:]]
    names = {text: f"s{k}" for k, text in enumerate(kept)}
    names |= dict.fromkeys(firsts[1:], names[firsts[0]] if firsts else "")
    return [
        value
        if value.dims is None
        else Value(value.dtype, tuple(names[d] if isinstance(d, str) else d for d in value.dims))
        for value in found
    ]


def _told(specs: Sequence[tf.TensorSpec]) -> str:
    return ", ".join(f"{spec.dtype.name}{spec.shape}" for spec in specs)
