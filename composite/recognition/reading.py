"""The nodes of a graph whose sizes are known, read into forms.

Not for: which nodes (cuts.py). What an op computes is in rules.py and layouts.py; an op that is in
neither is a function of its operands of which nothing else is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from composite.ops import call, functions
from composite.recognition.algebra import Algebra, Form, Shape

Array = np.ndarray[Any, Any]
Rule = Callable[["Reader", Any], Form | list[Form] | None]

COPIES = frozenset(["Identity", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics"])
OF_SIZES = frozenset(["Shape", "Size", "Rank"])
_LARGEST = 1 << 16  # elements of what is computed ahead


class UnreadableError(Exception):
    """A node whose sizes are not known, or a part that is not to be read."""


class Constants:
    """The values in a graph that follow from constants and sizes alone."""

    def __init__(self, graph: tf.Graph, unknown: Iterable[Any] = ()) -> None:
        """`unknown` are tensors whose values are taken for unknown."""
        self.graph = graph
        self._known: dict[str, Array | None] = {one.name: None for one in unknown}
        self._sized: dict[str, bool] = {}

    def without(self, tensors: Iterable[Any]) -> Constants:
        """The same, where these tensors are not known."""
        known = [one for one in tensors if self.value(one) is not None]
        return Constants(self.graph, known) if known else self

    def is_size(self, tensor: Any) -> bool:
        """Whether a value that is known is a floating number that follows from sizes."""
        if not tensor.dtype.is_floating or tensor.op.type == "Const":
            return False
        return any(self._has_size(one) for one in tensor.op.inputs)

    def _has_size(self, tensor: Any) -> bool:
        if tensor.name not in self._sized:
            op = tensor.op
            if op.type in OF_SIZES:
                self._sized[tensor.name] = True
            else:
                self._sized[tensor.name] = any(self._has_size(one) for one in op.inputs)
        return self._sized[tensor.name]

    def value(self, tensor: Any) -> Array | None:
        """The value of a tensor; None where it depends on an input."""
        if tensor.name not in self._known:
            self._known[tensor.name] = None  # while it is asked for
            self._known[tensor.name] = self._computed(tensor)
        return self._known[tensor.name]

    def _computed(self, tensor: Any) -> Array | None:
        op = tensor.op
        if op.type == "Const":
            return np.asarray(tf.make_ndarray(op.node_def.attr["value"].tensor))
        if op.type in OF_SIZES:
            return self._of_sizes(op, tensor.dtype.as_numpy_dtype)
        definition = call.op_def(op.type)
        shape = tensor.shape
        if definition is None or definition.is_stateful or not op.inputs:
            return None
        if not shape.is_fully_defined() or shape.num_elements() > _LARGEST:
            return None
        if functions.is_handle(tensor.dtype) or any(
            list(functions.named_by(value)) for value in op.node_def.attr.values()
        ):
            return None
        given = [self.value(one) for one in op.inputs]
        if any(one is None for one in given):
            return None
        with tf.init_scope(), tf.device("CPU"):
            results = call.eager_node(op.node_def, [tf.constant(one) for one in given])
        return np.asarray(results[tensor.value_index].numpy())

    @staticmethod
    def _of_sizes(op: Any, dtype: Any) -> Array | None:
        shape = op.inputs[0].shape
        if op.type == "Rank":
            return None if shape.rank is None else np.asarray(shape.rank, dtype)
        if not shape.is_fully_defined():
            return None
        sizes = shape.as_list() if op.type == "Shape" else shape.num_elements()
        return np.asarray(sizes, dtype)


class Reader:
    """Forms of the tensors of a graph, in terms of symbols.

    Attributes:
        algebra: what forms are made with.
    """

    def __init__(
        self,
        algebra: Algebra,
        constants: Constants,
        symbols: Mapping[str, Form],
        rules: Mapping[str, Rule],
    ) -> None:
        """`symbols` are the forms of tensors, by name, that are read no further."""
        self.algebra = algebra
        self._constants = constants
        self._forms: dict[str, Form] = dict(symbols)
        self._rules = rules

    def form(self, tensor: Any) -> Form:
        """The form of a tensor. UnreadableError: it depends on more than the symbols."""
        found = self._forms.get(tensor.name)
        if found is None:
            values = self._constants.value(tensor)
            found = self._read(tensor) if values is None else self.algebra.array(values)
            self._forms[tensor.name] = found
        return found

    def known(self, tensor: Any) -> Array:
        """The value of a tensor that has to be known."""
        values = self._constants.value(tensor)
        if values is None:
            raise UnreadableError
        return values

    @staticmethod
    def shape(tensor: Any) -> Shape:
        """The sizes of a tensor."""
        if not tensor.shape.is_fully_defined():
            raise UnreadableError
        return tuple(tensor.shape.as_list())

    def _read(self, tensor: Any) -> Form:
        op = tensor.op
        if op.type in COPIES:
            return self.form(op.inputs[0])
        definition = call.op_def(op.type)
        if definition is None or definition.is_stateful or not op.inputs:
            raise UnreadableError
        rule = self._rules.get(op.type)
        read = None if rule is None else rule(self, op)
        if isinstance(read, list):
            read = read[tensor.value_index] if tensor.value_index < len(read) else None
        return self._unknown(tensor) if read is None else read

    def _unknown(self, tensor: Any) -> Form:
        """A function of which nothing is known but its op, attributes and operands."""
        op = tensor.op
        attrs = sorted(
            (name, value.SerializeToString(deterministic=True))
            for name, value in op.node_def.attr.items()
            if not name.startswith("_") and value.WhichOneof("value") != "type"
        )
        shapes = tuple(self.shape(one) for one in op.inputs)
        params = (tensor.value_index, tuple(attrs), shapes)
        args = tuple(self.form(one) for one in op.inputs)
        return self.algebra.atom(op.type, params, args, self.shape(tensor))
