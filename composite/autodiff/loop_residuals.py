"""Loops of a forward, so that their gradient need not run them again.

TensorFlow's gradient of a loop has each trip of the forward append what it needs to lists, which
the trips of the backward take off again. No function gives or takes a list, so here each is stacked
to one tensor, [trips, ...], behind the loop of the forward, and the backward makes a list of that.
What takes no arithmetic, such as the numbers of trips and slices of inputs, is not worth the
memory: it comes from a loop of its own, which does nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding.records import AttrValue, attr_value
from composite.compiler import op_traits
from composite.compiler.loop_body import LoopBody

_VARIANT = tf.variant.as_datatype_enum
_INT32 = attr_value(tf.int32)
_ROUNDED = {
    dtype.as_datatype_enum
    for dtype in (tf.half, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128)
}


def without_lists(graph_def: Any, forward: Collection[str]) -> tuple[Any, dict[str, str]]:
    """The graph of a forward and its gradient, in which no list goes from one to the other.

    `forward` names the nodes of the forward. Loops that pass on other variants stay as they are;
    where all do, the graph is the one that was given. Returns it, and of the tensors to keep, by
    name, what they are, for people.
    """
    result = GraphDef()
    result.CopyFrom(graph_def)
    loops = [n for n in graph_def.node if n.name in forward and n.op == "StatelessWhile"]
    apart = [kept for n in loops if (kept := _Loop(n, result, forward).take_apart()) is not None]
    return (result if apart else graph_def), dict(itertools.chain(*map(dict.items, apart)))


class _Loop:
    """A StatelessWhile of the forward, in the graph that is being changed."""

    def __init__(self, node: Any, graph: Any, forward: Collection[str]) -> None:
        library = {f.signature.name: f for f in graph.library.function}
        self._node = node
        self._graph = graph
        self._readers = [n for n in graph.node if n.name not in forward]
        self._condition = LoopBody(library[node.attr["cond"].func.name])
        self._body = LoopBody(library[node.attr["body"].func.name])
        self._types = list(node.attr["T"].list.type)

    def take_apart(self) -> dict[str, str] | None:
        """Has the gradient read what is kept, what is counted again, and nothing else of it.

        Returns what is kept; None if that cannot be, and nothing was changed.
        """
        read = sorted(self._read())
        fixed = [i for i in read if self._body.result(i) == self._body.arguments[i]]
        counted = self._countable([i for i in read if i not in fixed])
        rest = [i for i in read if i not in fixed and i not in counted]
        lists = {i: self._appending(i) for i in rest if self._types[i] == _VARIANT}
        if None in lists.values():
            return None
        kept: dict[str, str] = {}
        places = {i: self._node.input[i] for i in fixed}
        places |= dict(self._count_again(counted)) if counted else {}
        for i, appending in lists.items():
            stack, places[i] = self._stack(i, appending)
            item = self._body.node_of(appending.input[1])
            kept[stack] = f"{item.op if item is not None else 'carried value'} of each trip"
        for i in rest:
            if i not in lists:
                kept[self._output(i)] = "a result of the loop"
        for reader in self._readers:
            for at, text in enumerate(reader.input):
                reader.input[at] = places.get(self._position(text), text)
        return kept

    def _read(self) -> set[int]:
        """The results that the gradient reads."""
        texts = (text for reader in self._readers for text in reader.input)
        return {self._position(text) for text in texts} - {-1}

    def _position(self, text: str) -> int:
        """Which result of the loop an input is; -1 for those of other nodes."""
        name, _, position = text.partition(":")
        return int(position or 0) if name == self._node.name else -1

    def _output(self, i: int) -> str:
        return f"{self._node.name}:{i}"

    def _appending(self, i: int) -> Any:
        """What appends to a list, which is empty before the loop, a tensor of known rank a trip.

        None if there is no such node.
        """
        made, node = self._maker(self._node.input[i]), self._body.appended(i)
        if made.op != "EmptyTensorList" or node is None or self._body.readers(i) != [node.name]:
            return None
        value = self._maker(made.input[0]).attr["value"].tensor
        is_vector = value.dtype == tf.int32.as_datatype_enum and len(value.tensor_shape.dim) == 1
        return node if is_vector and node.attr["element_dtype"].type != _VARIANT else None

    def _maker(self, text: str) -> Any:
        name = text.split(":", maxsplit=1)[0]
        return next(node for node in self._graph.node if node.name == name)

    def _countable(self, results: Sequence[int]) -> list[int]:
        """Of these results those that take no arithmetic on floating-point values."""
        return [i for i in results if not self._computes(self._closure([i], values=True))]

    def _closure(self, results: Sequence[int], *, values: bool = False) -> list[int]:
        """What a loop has to pass on to make these results, and to end when this one does."""
        found = set(results) | self._condition.made_of([0], values=values)[1]
        while not (needed := self._body.made_of(sorted(found), values=values)[1]) <= found:
            found |= needed
        return sorted(found)

    def _computes(self, results: Sequence[int]) -> bool:
        parts = (self._condition, [0]), (self._body, results)
        nodes = [n for body, made in parts for n in body.made_of(made, values=True)[0].values()]
        return any(
            _ROUNDED & {value.type, *value.list.type}
            for node in nodes
            if not op_traits.of(node.op).moves_data
            for value in node.attr.values()
        )

    def _count_again(self, results: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Adds a loop that makes these results alone; gives their new names."""
        passed = self._closure(results)
        node = self._graph.node.add()
        node.CopyFrom(self._node)
        node.name = self._new(f"{self._node.name}/counted")
        node.input[:] = [self._node.input[i] for i in passed]
        for key, source, made in (("cond", self._condition, [0]), ("body", self._body, passed)):
            name = f"{node.attr[key].func.name}_counted_{len(self._graph.library.function)}"
            self._graph.library.function.append(source.part(name, passed, made))
            node.attr[key].func.name = name
        node.attr["T"].list.type[:] = [self._types[i] for i in passed]
        shapes = self._node.attr["output_shapes"].list.shape
        if shapes:
            del node.attr["output_shapes"].list.shape[:]
            node.attr["output_shapes"].list.shape.extend(shapes[i] for i in passed)
        return ((i, f"{node.name}:{passed.index(i)}") for i in results)

    def _stack(self, i: int, appending: Any) -> tuple[str, str]:
        """Adds what stacks a list, and what makes a list of that; gives the names of both."""
        dtype = appending.attr["element_dtype"]
        (told, _) = self._maker(self._node.input[i]).input
        name = f"{self._node.name}/kept_{i}"
        listed = self._output(i)
        stack = self._add(
            name,
            "TensorListStack",
            [listed, self._element_shape(name, listed, told)],
            element_dtype=dtype,
            num_elements=attr_value(-1),
        )
        return stack, self._add(
            f"{name}/list",
            "TensorListFromTensor",
            [stack, told],
            element_dtype=dtype,
            shape_type=_INT32,
        )

    def _element_shape(self, name: str, listed: str, told: str) -> str:
        """The shape with which a list is stacked, which has to be known if no trip is made.

        Without a trip, what is not known of it counts as 0: a tensor without elements.
        """
        value = self._maker(told).attr["value"].tensor
        if (tf.make_ndarray(value) >= 0).all():
            return told
        found = self._add(f"{name}/element", "TensorListElementShape", [listed], shape_type=_INT32)
        length = self._add(f"{name}/length", "TensorListLength", [listed])
        negative = self._add(f"{name}/negative", "Neg", [length], T=_INT32)
        return self._add(f"{name}/shape", "Maximum", [found, negative], T=_INT32)

    def _add(self, name: str, op: str, inputs: Sequence[str], **attrs: AttrValue) -> str:
        name = self._new(name)
        node = self._graph.node.add(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(value)
        return f"{name}:0"

    def _new(self, name: str) -> str:
        """A name that no node has: this may be the gradient of a gradient."""
        taken = {node.name for node in self._graph.node}
        numbered = (f"{name}_{k}" for k in itertools.count(1))
        return next(n for n in itertools.chain([name], numbered) if n not in taken)
