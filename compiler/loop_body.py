"""Queries about the FunctionDef of a loop's condition or body, and copies of parts of it.

It reads TF's protos and does not import TensorFlow. Not for: what a loop carries from trip to trip
(tvm/read/while_loop.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from composite.compiler import op_traits


class LoopBody:
    """A FunctionDef; results and arguments are known by their positions."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.arguments = [arg.name for arg in function.signature.input_arg]
        self._nodes = {node.name: node for node in function.node_def}

    def result(self, i: int) -> str:
        """Return what result i is, seen through Identity: a node's output or an argument."""
        return self._source(self._returned(i))

    def node_of(self, reference: str) -> Any | None:
        """Return the node that makes a value, seen through Identity; None for an argument."""
        return self._node(self._source(reference))

    def appended(self, i: int) -> Any | None:
        """Return the node that appends to argument i to make result i; None if none does."""
        node = self._node(self.result(i))
        if node is None or node.op != "TensorListPushBack" or node.input[0] != self.arguments[i]:
            return None
        return node

    def readers(self, i: int) -> list[str]:
        """Return the names of the nodes that read argument i."""
        return [n.name for n in self.function.node_def if self.arguments[i] in n.input]

    def made_of(
        self, results: Sequence[int], *, values: bool = False
    ) -> tuple[dict[str, Any], set[int]]:
        """Return the nodes that make these results, by name, and the arguments that those read.

        `values`: without nodes of which only the shape of the result is read.
        """
        found: dict[str, Any] = {}
        read: set[str] = set()
        waiting = [self._returned(i) for i in results]
        while waiting:
            reference = waiting.pop()
            node = self._node(reference)
            if node is None:
                read.add(reference)
            elif node.name not in found:
                found[node.name] = node
                if not (values and op_traits.of(node.op).reads_only_shapes):
                    waiting += node.input
        return found, {i for i, name in enumerate(self.arguments) if name in read}

    def part(self, name: str, arguments: Sequence[int], results: Sequence[int]) -> Any:
        """Return a function that computes some of the results from some of the arguments."""
        made, whole = type(self.function)(), self.function.signature
        made.signature.name = name
        made.signature.input_arg.extend(whole.input_arg[i] for i in arguments)
        made.signature.output_arg.extend(whole.output_arg[i] for i in results)
        nodes, _ = self.made_of(results)
        made.node_def.extend(node for node in self.function.node_def if node.name in nodes)
        for arg in made.signature.output_arg:
            made.ret[arg.name] = self.function.ret[arg.name]
        return made

    def _returned(self, i: int) -> str:
        return str(self.function.ret[self.function.signature.output_arg[i].name])

    def _source(self, reference: str) -> str:
        while (node := self._node(reference)) is not None and node.op == "Identity":
            reference = node.input[0]
        return reference

    def _node(self, reference: str) -> Any | None:
        return self._nodes.get(reference.removeprefix("^").split(":")[0])
