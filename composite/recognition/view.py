"""A graph whose sizes are known as numbers: what the search for parts asks of each tensor, once.

The tensors are counted as they are met. Not for: what depends on the op that is looked for.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from composite.editing.scope import Scope
from composite.ops import call, functions
from composite.recognition.reading import COPIES, OF_SIZES, Constants
from composite.recognition.vocabulary import kinds_of_op

# Sizes of dims that are not known, by axis: such that no two are taken for one; else all the same.
_SIZES: tuple[tuple[int, ...], ...] = ((5, 7, 11, 13, 17, 19), (6, 9, 4, 10, 14, 15))
_SAME = ((6,), (9,))


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a tensor.

    Attributes:
        tensor: itself.
        place: of its node in the order of all, results first.
        is_known: its value follows from constants and sizes, and is no number made of sizes.
        may_be_given: its value is known, and it may be an input all the same.
        may_be_inside: its node has no state, runs no function, and all sizes are known.
        may_be_input: its size is known and it is no handle.
        kinds: of its node.
    """

    tensor: Any
    place: int
    is_known: bool
    may_be_given: bool
    may_be_inside: bool
    may_be_input: bool
    kinds: tuple[str, ...]


class View:
    """The tensors of a graph, counted.

    Attributes:
        constants: the values in it; has the graph.
        order: the places of nodes, results first.
        facts: of each tensor that was met.
    """

    def __init__(self, constants: Constants, order: Mapping[str, int]) -> None:
        self.constants = constants
        self.order = order
        self.facts: list[Facts] = []
        self._numbers: dict[str, int] = {}
        self._operands: dict[int, tuple[int, ...]] = {}
        self._nodes: dict[str, bytes] = {}

    def number(self, tensor: Any) -> int:
        """The number of what a tensor is a copy of."""
        tensor = _resolved(tensor)
        name = tensor.name
        if name not in self._numbers:
            self._numbers[name] = len(self.facts)
            self.facts.append(self._facts(tensor))
        return self._numbers[name]

    def operands(self, number: int) -> tuple[int, ...]:
        """The tensors that the node of a tensor takes, each once."""
        if number not in self._operands:
            taken = (self.number(one) for one in self.facts[number].tensor.op.inputs)
            self._operands[number] = tuple(dict.fromkeys(taken))
        return self._operands[number]

    def _facts(self, tensor: Any) -> Facts:
        op = tensor.op
        value = self.constants.value(tensor)
        definition = call.op_def(op.type)
        return Facts(
            tensor,
            self.order[op.name],
            value is not None and not self.constants.is_size(tensor),
            value is not None and value.size > 1 and op.type not in OF_SIZES,
            definition is not None
            and not definition.is_stateful
            and bool(op.inputs)
            and all(x.shape.is_fully_defined() for x in (*op.inputs, tensor))
            and not any(list(functions.named_by(v)) for v in op.node_def.attr.values()),
            tensor.shape.is_fully_defined() and not functions.is_handle(tensor.dtype),
            kinds_of_op(op),
        )

    def node(self, op: Any) -> bytes:
        """What a node computes of its inputs: a digest, equal for nodes that compute the same."""
        if op.name not in self._nodes:
            digest = hashlib.sha256(op.type.encode())
            for name, value in sorted(op.node_def.attr.items()):
                if not name.startswith("_"):
                    digest.update(name.encode() + value.SerializeToString(deterministic=True))
            self._nodes[op.name] = digest.digest()
        return self._nodes[op.name]

    def structure(self, root: Any, inputs: Sequence[Any]) -> bytes:
        """What a tensor is of others: a digest, equal for parts that consist of equal nodes."""
        known = {one.name: f"input {k}" for k, one in enumerate(inputs)}
        digest = hashlib.sha256()
        for one in inputs:
            digest.update(f"{one.dtype.name}{one.shape}".encode())
        places: dict[str, int] = {}
        pending = [root.op]
        while pending:
            op = pending.pop()
            if op.name in places:
                continue
            taken = [] if op.type in OF_SIZES else [_resolved(x, known) for x in op.inputs]
            missing = [x.op for x in taken if x.name not in known and x.op.name not in places]
            if missing:
                pending += [op, *missing]
                continue
            places[op.name] = len(places)
            words = [known.get(x.name) or f"{places[x.op.name]}:{x.value_index}" for x in taken]
            if op.type in OF_SIZES:
                words = [str(x.shape) for x in op.inputs]
            digest.update(self.node(op) + ";".join(words).encode())
        digest.update(f"{root.value_index}".encode())
        return digest.digest()


def _resolved(tensor: Any, ends: Container[str] = ()) -> Any:
    """What a tensor is a copy of, or the one among its copies that is named in `ends`."""
    while tensor.op.type in COPIES and tensor.name not in ends:
        tensor = tensor.op.inputs[0]
    return tensor


class Views:
    """The scopes of a graph with two choices of sizes for the dims that are not known.

    What does not change between two questions is read once.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], list[View]] = {}

    def of(self, scope: Scope) -> list[View]:
        """The views of a scope; none where there are no inputs of such sizes."""
        described = scope.described().SerializeToString(deterministic=True)
        key = (scope.name, hashlib.sha256(described).digest())
        if key not in self._known:
            self._known[key] = _views(scope)
        return self._known[key]


def _views(scope: Scope) -> list[View]:
    order = {name: k for k, name in enumerate(scope.from_the_results())}
    for choices in (_SIZES, _SAME):
        try:
            graphs = [scope.sized(functools.partial(_size, sizes)) for sizes in choices]
        except (ValueError, tf.errors.OpError):
            continue  # there are no such inputs
        return [View(Constants(graph), order) for graph in graphs]
    return []


def _size(sizes: Sequence[int], axis: int) -> int:
    return sizes[min(axis, len(sizes) - 1)]
