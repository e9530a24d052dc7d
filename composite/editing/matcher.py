"""Finds a pattern at a node of a scope, or says what is different there.

Not for: whether what was found may be replaced (finding.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.binding.records import AttrValue, python_value
from composite.compiler import op_traits
from composite.editing.pattern import Pattern
from composite.editing.scope import Edge, Scope
from composite.ops import call, function_digest, functions

_MOST_ORDERS = 5  # operands of an AddN whose orders are all tried


@dataclass(frozen=True)
class Found:
    """A pattern in a scope.

    Attributes:
        nodes: of each node of the pattern, constants included, the one in its place.
        inputs: of each input, by its name, what stands for it.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Edge] = field(default_factory=dict)

    def with_node(self, name: str, node: str) -> Found:
        """The same, and this node."""
        return Found({**self.nodes, name: node}, self.inputs)


class Search:
    """A pattern looked for in a scope.

    Attributes:
        reason: after a search, the difference behind the largest part that was found.
        reached: of how many nodes that part was.
    """

    def __init__(self, pattern: Pattern, scope: Scope) -> None:
        self._pattern = pattern
        self._graph = pattern.graph
        self._scope = scope
        self._by_op: dict[str, list[str]] = {}
        for name, node in scope.nodes.items():
            self._by_op.setdefault(node.op, []).append(name)
        self.reason = ""
        self.reached = 0

    def at(self, node: str) -> Iterator[Found]:
        """Each way in which the node gives the pattern's first result."""
        self.reason, self.reached = "", 0
        first, *others = self._graph.outputs
        for found in self._edge(first, Edge(node, first.output), Found()):
            yield from self._further(others, found)

    def _further(self, outputs: Sequence[Edge], found: Found) -> Iterator[Found]:
        if not outputs:
            yield found
            return
        wanted, *others = outputs
        if wanted.node in found.nodes:
            yield from self._further(others, found)
            return
        candidates = self._by_op.get(self._graph.nodes[wanted.node].op, [])
        if not candidates:
            self._differ(found, f"there is no {self._graph.nodes[wanted.node].op} beside it")
        for node in candidates:
            for more in self._edge(wanted, Edge(node, wanted.output), found):
                yield from self._further(others, more)

    def _differ(self, found: Found, reason: str) -> None:
        reached = sum(1 for name in found.nodes if not self._pattern.is_constant(name))
        if not self.reason or reached > self.reached:
            self.reason, self.reached = reason, reached

    def _edge(self, wanted: Edge, of: Edge, found: Found) -> Iterator[Found]:
        """Each way in which an output is what the pattern wants."""
        if wanted.node in self._graph.inputs:
            yield from self._input(wanted.node, of, found)
            return
        of = self._scope.resolved(of)
        if wanted.node in found.nodes:
            if found.nodes[wanted.node] == of.node and wanted.output == of.output:
                yield found
            else:
                known = Edge(found.nodes[wanted.node], wanted.output)
                self._differ(found, f"{of} is not {known}, as it is elsewhere in the pattern")
            return
        difference = self._difference(wanted, of)
        if difference is not None:
            self._differ(found, difference)
            return
        yield from self._operands(wanted.node, of.node, found.with_node(wanted.node, of.node))

    def _input(self, name: str, of: Edge, found: Found) -> Iterator[Found]:
        known = found.inputs.get(name)
        if known is None:
            spec = self._pattern.specs[self._graph.inputs.index(name)]
            difference = None if spec is None else _spec_difference(self._scope, of, spec)
            if difference is not None:
                self._differ(found, difference)
                return
            yield Found(found.nodes, {**found.inputs, name: of})
        elif self._scope.resolved(known) == self._scope.resolved(of):
            yield found
        else:
            self._differ(found, f"{of} is not {known}, as it is elsewhere in the pattern")

    def _operands(self, name: str, node: str, found: Found) -> Iterator[Found]:
        wanted = self._graph.operands(name)
        given = self._scope.operands(node)
        if len(wanted) != len(given):
            self._differ(found, f"{node} has {len(given)} operands, not {len(wanted)}")
            return
        traits = op_traits.of(self._graph.nodes[name].op)
        orders: Iterator[Sequence[Edge]] = iter([given])
        if traits.commutes and len(given) <= _MOST_ORDERS:
            orders = itertools.permutations(given)
        for order in orders:
            yield from self._all(list(zip(wanted, order, strict=True)), found)

    def _all(self, pairs: Sequence[tuple[Edge, Edge]], found: Found) -> Iterator[Found]:
        if not pairs:
            yield found
            return
        (wanted, of), *others = pairs
        for more in self._edge(wanted, of, found):
            yield from self._all(others, more)

    def _difference(self, wanted: Edge, of: Edge) -> str | None:
        """What is different about two nodes alone."""
        mine, its = self._graph.nodes[wanted.node], self._scope.nodes[of.node]
        if mine.op != its.op:
            return f"{of.node} is {_named(its.op)}, not {mine.op}"
        if wanted.output != of.output:
            return f"output {of.output} of {of.node} is taken, not {wanted.output}"
        if mine.op == "Const":
            return self._constant_difference(wanted.node, its)
        definition = call.op_def(mine.op)
        defaults = {a.name: a.default_value for a in definition.attr if a.HasField("default_value")}
        for attr in definition.attr:
            x = mine.attr[attr.name] if attr.name in mine.attr else defaults.get(attr.name)
            y = its.attr[attr.name] if attr.name in its.attr else defaults.get(attr.name)
            if not self._are_equal(x, y):
                return f"{attr.name} of {of.node} ({its.op}) is {_text(y)}, not {_text(x)}"
        return None

    def _constant_difference(self, name: str, its: Any) -> str | None:
        x = self._pattern.constants[name]
        y = tf.make_ndarray(its.attr["value"].tensor)
        if x.dtype != y.dtype:
            return f"constant {its.name} is {y.dtype}, not {x.dtype}"
        if x.shape != y.shape:
            return f"constant {its.name} has shape {list(y.shape)}, not {list(x.shape)}"
        is_same = np.array_equal(x, y) if x.dtype == object else x.tobytes() == y.tobytes()
        if not is_same:
            return f"constant {its.name} is {_short(y)}, not {_short(x)}"
        return None

    def _are_equal(self, x: AttrValue | None, y: AttrValue | None) -> bool:
        if x is None or y is None or x == y:
            return x == y
        mine, its = functions.named_by(x), functions.named_by(y)
        if not mine or len(mine) != len(its):
            return False
        return [_digest(f.name, self._graph.library) for f in mine] == [
            _digest(f.name, self._scope.library) for f in its
        ]


def _digest(name: str, library: Mapping[str, Any]) -> str:
    reached = functions.reachable(name, library)
    return function_digest.digest(FunctionDefLibrary(function=[library[n] for n in reached]))


def _spec_difference(scope: Scope, of: Edge, spec: tf.TensorSpec) -> str | None:
    """What keeps an output from being one that a spec describes."""
    tensor = scope.tensor(of)
    if tensor.dtype != spec.dtype:
        return f"{of} is {tensor.dtype.name}, not {spec.dtype.name}"
    if not _has(tensor.shape, spec.shape):
        return f"{of} has shape {tensor.shape}, not {spec.shape}"
    return None


def _has(shape: tf.TensorShape, wanted: tf.TensorShape) -> bool:
    """Whether a shape is known to have what is wanted of it."""
    if wanted.rank is None:
        return True
    if shape.rank != wanted.rank:
        return False
    return all(y is None or x == y for x, y in zip(shape, wanted, strict=True))


def _named(op: str) -> str:
    return "an input" if op in ("Placeholder", "VarHandleOp") else op


def _text(value: AttrValue | None) -> str:
    if value is None:
        return "not given"
    kind = value.WhichOneof("value")
    if kind == "type":
        return str(tf.as_dtype(value.type).name)
    return (
        repr(python_value(value)) if kind in ("s", "i", "f", "b") else " ".join(str(value).split())
    )


def _short(value: np.ndarray[Any, Any]) -> str:
    return str(value.item()) if value.size == 1 else f"of other values, {value.ravel()[:3]} first"
