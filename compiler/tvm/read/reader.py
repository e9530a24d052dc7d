"""Read a TF FunctionDefLibrary into a lowered :class:`graph.Function`, op by op from the table.

``function[0]`` is read; functions that it calls are inlined. Only what the returned values need is
read. A node with an effect is refused: an effect may not be dropped, and kernels have none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from composite.compiler import op_traits
from composite.compiler.node_place import of_node
from composite.compiler.tvm import table
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Constant, Parameter, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import reachable, unreshaped
from composite.compiler.tvm.nodes.node import OpNode, dtype_name

_MAX_CALL_DEPTH = 64


def read_function(
    library: Any, in_shapes: Sequence[Sequence[int | str]], sizes: Collection[int] = ()
) -> Function:
    """Return the lowered form of ``library.function[0]`` for the given input shapes.

    Args:
        library: A ``tensorflow.FunctionDefLibrary`` with concrete dtypes.
        in_shapes: One shape an input; a dimension is an int or a symbol such as ``"s0"``.
        sizes: Inputs whose values are sizes: integers, scalars for the function. In the place of
            its shape each has ``(value,)``, and so it is passed to the kernel: as a tensor of that
            shape, of which no element is read.

    Raises:
        NotCovered: Naming the op, dtype or fact that stands in the way.
        ValueError: If the number of shapes is not the number of inputs.
    """
    function = library.function[0]
    arguments = function.signature.input_arg
    if len(arguments) != len(in_shapes):
        raise ValueError(f"{len(in_shapes)} shapes for the {len(arguments)} inputs of the function")
    if not function.signature.output_arg:
        raise NotCovered("it has no outputs: there is nothing to compute")
    parameters = tuple(
        Tensor(tuple(dims.parse(d) for d in shape), dtype_name(arg.type, arg.name), Parameter(i))
        for i, (arg, shape) in enumerate(zip(arguments, in_shapes, strict=True))
    )
    functions = {f.signature.name: f for f in library.function}
    minimums: dict[str, int] = {}
    values = [argument_of(t, i in sizes) for i, t in enumerate(parameters)]
    body = Body(functions, function, values, minimums)
    outputs = tuple(body.outputs())
    _require_dtypes(function, outputs)
    return Function(parameters, outputs, minimums, body.origins())


def _require_dtypes(function: Any, outputs: Sequence[Tensor]) -> None:
    """Raise where a lowering gave another dtype than its op: the kernel would refuse all calls."""
    for arg, tensor in zip(function.signature.output_arg, outputs, strict=True):
        if (wanted := dtype_name(arg.type, arg.name)) != tensor.dtype:
            place = f"{function.signature.name}, result {function.ret[arg.name]}"
            raise RuntimeError(f"{place}: lowered to {tensor.dtype}, and its dtype is {wanted}")


def argument_of(parameter: Tensor, is_size: bool) -> Tensor:
    """Return what a function takes for an input: of one that is a size, its value."""
    if not is_size:
        return parameter
    value = np.asarray(parameter.shape[0], object)
    return Tensor((), parameter.dtype, Constant(value), value)


def _results(tensors: list[Tensor], operands: list[Tensor]) -> list[Tensor]:
    """Return the results of an op, the one that it computes marked as such.

    Several are left alone: one may be made of another, and would be computed twice.
    """
    if len(tensors) != 1 or tensors[0].is_result or tensors[0] in operands:
        return tensors
    (tensor,) = tensors
    made = unreshaped(tensor)  # a reduction that keeps its dimensions
    is_anchor = made.node.is_anchor and made not in map(unreshaped, operands)
    computed = is_anchor or isinstance(tensor.node, Pointwise)
    return [replace(tensor, is_result=True)] if computed else tensors


class Body:
    """One function body under evaluation: values by tensor name, nodes read on demand."""

    def __init__(  # noqa: PLR0913, PLR0917 - a function, and where it is read
        self,
        functions: dict[str, Any],
        function: Any,
        arguments: Sequence[Tensor],
        minimums: dict[str, int],
        depth: int = 0,
        counts: Mapping[str, Dim] | None = None,
    ) -> None:
        self._functions = functions
        self._function = function
        self._minimums = minimums
        self._depth = depth
        self._counts = counts or {}
        self._nodes = {n.name: n for n in function.node_def}
        names = [a.name for a in function.signature.input_arg]
        self._values: dict[str, list[Tensor]] = {
            name: [tensor] for name, tensor in zip(names, arguments, strict=True)
        }
        for node in function.node_def:
            _refuse_effects(node)

    def outputs(self, which: Sequence[int] | None = None) -> list[Tensor]:
        """Return the returned values, or those of them that are asked for."""
        results = self._function.signature.output_arg
        wanted = range(len(results)) if which is None else which
        return [self.value(self._function.ret[results[i].name]) for i in wanted]

    def origins(self) -> dict[Tensor, str]:
        """The node for which each tensor was made: of this function, not of those that it calls."""
        found: dict[Tensor, str] = {}
        for name, results in self._values.items():  # operands come before what is made of them

            def below(tensor: Tensor, name: str = name) -> tuple[Tensor, ...]:
                if tensor in found or isinstance(tensor.node, Parameter):
                    return ()
                found[tensor] = name
                return tensor.node.operands

            reachable(results, below)
        return found

    def value(self, reference: str) -> Tensor:
        """Return the tensor that ``"node:output:index"`` or ``"argument"`` names."""
        name, *rest = reference.split(":")
        self.evaluate(name)
        results = self._values[name]
        if not rest:
            return results[0]
        named = op_traits.of(self._nodes[name].op).outputs
        return results[(named.index(rest[0]) if named else 0) + int(rest[-1])]

    def evaluate(self, name: str) -> None:
        """Evaluate a node and all that it needs, without Python's recursion (graphs are deep)."""
        stack = [name]
        while stack:
            current = stack[-1]
            if current in self._values:
                stack.pop()
                continue
            node = self._nodes[current]
            inputs = [i for i in node.input if not i.startswith("^")]
            missing = [i.split(":")[0] for i in inputs if i.split(":")[0] not in self._values]
            if missing:
                stack.extend(missing)
                continue
            try:
                self._values[current] = self._lower(node, [self.value(i) for i in inputs])
            except NotCovered as answer:
                raise answer.at(of_node(node), current) from answer
            stack.pop()

    def _lower(self, node: Any, inputs: list[Tensor]) -> list[Tensor]:
        if node.op in table.CALLS:
            return self._call(node, inputs)
        if node.op in table.LOOPS:
            from composite.compiler.tvm.read.while_loop import (
                lower_while,  # needs TVM, which reading names must not
            )

            return lower_while(node, inputs, self._read, self._functions, self._minimums)
        if node.op in table.BRANCHES:
            from composite.compiler.tvm.read.branches import lower_branches  # as above

            return lower_branches(node, inputs, self._read, self._functions, self._minimums)
        lower = table.lowering(node.op)
        if lower is None:
            raise unlisted(node)
        return _results(lower(OpNode(node, self._minimums, self._counts), inputs), inputs)

    def _call(self, node: Any, inputs: list[Tensor]) -> list[Tensor]:
        callee = self._functions.get(node.attr["f"].func.name)
        if callee is None:
            raise NotCovered(f"function {node.attr['f'].func.name} is not in the library")
        return self._read(callee.signature.name, inputs, {}, self._minimums)

    def _read(
        self,
        name: str,
        arguments: Sequence[Tensor],
        counts: Mapping[str, Dim],
        minimums: dict[str, int],
        which: Sequence[int] | None = None,
    ) -> list[Tensor]:
        """Return what a function of the library makes of arguments, within these loops."""
        if self._depth >= _MAX_CALL_DEPTH:
            raise NotCovered(f"calls nest deeper than {_MAX_CALL_DEPTH}")
        callee, inner = self._functions[name], {**self._counts, **counts}
        body = Body(self._functions, callee, arguments, minimums, self._depth + 1, inner)
        return body.outputs(which)


def _refuse_effects(node: Any) -> None:
    """Refuse ops that are not in the table even where no value needs them, if they have effects.

    Without TF's op registry an effect cannot be told from dead code; what TF's own tracing leaves
    unused is pruned by the runtime before a kernel is asked for, so unknown ops are refused.
    """
    if is_unlisted(node):
        raise unlisted(node)


def is_unlisted(node: Any) -> bool:
    """Return whether no kernel may hold the node's op."""
    return node.op not in table.NAMES and node.op != "NoOp"


def unlisted(node: Any) -> NotCovered:
    """Return the answer for such a node."""
    return NotCovered(f"op {node.op} is not in the kernel table", of_node(node))
