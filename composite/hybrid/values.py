"""Dtypes and shapes of a graph's values, with dims in terms of the inputs' unknown ones.

Shapes are inferred twice, at sizes that no model has by itself; what fits both is the dim. Not for:
what regions compute, whose kernels say their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from composite.editing.scope import Edge
from composite.hybrid.parts import Parts
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
        self,
        library: Any,
        specs: Sequence[tf.TensorSpec],
        stated: Shapes | None = None,
        parts: Sequence[Parts] = (),
    ) -> None:
        """Of function[0] of a library. ValueError if it does not take inputs of these specs.

        `parts` says which of them are tensors of a ragged or sparse value.
        """
        self._source = functions.body(library)
        state(self._source.graph_def, stated or {})
        self.inputs, cases, graphs = self._probed(specs, parts)
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
        self, specs: Sequence[tf.TensorSpec], parts: Sequence[Parts]
    ) -> tuple[list[Value], list[dict[str, int]], list[tf.Graph]]:
        """The inputs, the symbols' sizes, and the graph with inputs of these sizes."""
        attempts = [_symbols_of_their_own(specs, parts), _one_batch(specs, parts)]
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


def _symbols_of_their_own(
    specs: Sequence[tf.TensorSpec], parts: Sequence[Parts] = ()
) -> list[Value]:
    """Each unknown dim is a symbol; a sparse tensor has as many values as it has indices."""
    found = [
        Value(spec.dtype, None if spec.shape.rank is None else tuple(_named(spec, k)))
        for k, spec in enumerate(specs)
    ]
    for one in parts:
        if isinstance(one.spec, tf.SparseTensorSpec):
            indices, values, _ = one.indices
            found[values] = Value(found[values].dtype, (found[indices].dims or ())[:1])
    return _numbered(found)


def _named(spec: tf.TensorSpec, number: int) -> Iterator[int | str]:
    """The dims of an input, with texts of their own for those that are not known."""
    for axis, size in enumerate(spec.shape):
        yield f"{number}.{axis}" if size is None else size


def _one_batch(specs: Sequence[tf.TensorSpec], parts: Sequence[Parts] = ()) -> list[Value]:
    """The same, but that unknown first dims are one symbol, a batch: those of whole values."""
    found = _symbols_of_their_own(specs, parts)
    within = {k for one in parts for k in one.indices}
    whole = [value.dims for k, value in enumerate(found) if k not in within]
    batch = [dims[0] for dims in whole if dims and isinstance(dims[0], str)]
    return _numbered(found, dict.fromkeys(batch, batch[0]) if batch else {})


def _numbered(
    values: Sequence[Value], same: Mapping[Any, str] = MappingProxyType({})
) -> list[Value]:
    """Values whose symbols are s0, s1, ... in their order; those that are the `same` are one."""
    names: dict[str, str] = {}

    def renamed(dim: int | str) -> int | str:
        dim = same.get(dim, dim)
        return names.setdefault(dim, f"s{len(names)}") if isinstance(dim, str) else dim

    return [
        value if value.dims is None else Value(value.dtype, tuple(map(renamed, value.dims)))
        for value in values
    ]


def _told(specs: Sequence[tf.TensorSpec]) -> str:
    return ", ".join(f"{spec.dtype.name}{spec.shape}" for spec in specs)
