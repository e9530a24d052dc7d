"""What the condition or the body of a loop is made of: a FunctionDef, part by part.

Not for loops within kernels: see `compiler.tvm.while_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow.core.framework.function_pb2 import FunctionDef

# What reads the shape of its input, and no element.
OF_SHAPE = frozenset(("Rank", "Shape", "ShapeN", "Size"))


class LoopBody:
    """A FunctionDef, of which parts are told by the results that they make, by position."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.arguments = [arg.name for arg in function.signature.input_arg]
        self._nodes = {node.name: node for node in function.node_def}

    def result(self, i: int) -> str:
        """What is returned, before it is only given on."""
        reference = str(self.function.ret[self.function.signature.output_arg[i].name])
        while (node := self._node(reference)) is not None and node.op == "Identity":
            reference = node.input[0]
        return reference

    def appended(self, i: int) -> Any | None:
        """The node that appends to argument i what makes result i, if that is all it does."""
        node = self._node(self.result(i))
        if node is None or node.op != "TensorListPushBack" or node.input[0] != self.arguments[i]:
            return None
        return node

    def readers(self, i: int) -> list[str]:
        """The names of the nodes that read argument i."""
        return [n.name for n in self.function.node_def if self.arguments[i] in n.input]

    def node_of(self, reference: str) -> Any | None:
        """The node that makes a value, before it is only given on; None of an argument."""
        node = self._node(reference)
        while node is not None and node.op == "Identity":
            node = self._node(node.input[0])
        return node

    def made_of(
        self, results: Sequence[int], *, values: bool = False
    ) -> tuple[dict[str, Any], set[int]]:
        """The nodes that make these results, by name, and the arguments that those read.

        `values`: without what only has to be there for its shape.
        """
        found: dict[str, Any] = {}
        read: set[str] = set()
        waiting = [self.function.ret[self.function.signature.output_arg[i].name] for i in results]
        while waiting:
            reference = waiting.pop()
            node = self._node(reference)
            if node is None:
                read.add(reference)
            elif node.name not in found:
                found[node.name] = node
                if not (values and node.op in OF_SHAPE):
                    waiting += node.input
        return found, {i for i, name in enumerate(self.arguments) if name in read}

    def part(self, name: str, arguments: Sequence[int], results: Sequence[int]) -> Any:
        """A function of some arguments that makes some results."""
        made, whole = FunctionDef(), self.function.signature
        made.signature.name = name
        made.signature.input_arg.extend(whole.input_arg[i] for i in arguments)
        made.signature.output_arg.extend(whole.output_arg[i] for i in results)
        nodes, _ = self.made_of(results)
        made.node_def.extend(node for node in self.function.node_def if node.name in nodes)
        for arg in made.signature.output_arg:
            made.ret[arg.name] = self.function.ret[arg.name]
        return made

    def _node(self, reference: str) -> Any | None:
        return self._nodes.get(reference.removeprefix("^").split(":")[0])
