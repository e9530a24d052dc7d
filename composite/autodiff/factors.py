"""Gradients of element-wise chains as one product.

What TensorFlow's gradient of such a chain makes of an incoming gradient g is linear in it, as
``0.5 g erfc(z) - x g e^-z² / √π`` of a GELU is. As ``g f`` it has a factor f that is made of the
forward's values alone. So the forward can keep f, which it computes beside the chain's value from
the same elementary functions, in the place of what both are made of.

Only sums and products are taken together. An op that chooses gives 0 also for a g that is infinite
or NaN, where a product with 0 does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.binding.records import attr_value
from composite.compiler import op_traits

# A factor of fewer operations is as cheap as what it is made of; one of more nodes is not looked
# for: what many chains share is written for each.
_LEAST_OPERATIONS = 4
_MOST_NODES = 64

# float16 is none: a product of factors overflows soon where the gradient is small.
_DTYPES = frozenset({tf.float32, tf.float64, tf.bfloat16})
_SUMS = frozenset({"Add", "AddV2", "AddN", "Sub"})
# Of activations' gradients, which are products, and other ops: the operands that they scale.
_ACTIVATIONS = {"TanhGrad": (1,), "SigmoidGrad": (1,), "SoftplusGrad": (0,), "SoftsignGrad": (0,)}
_SCALINGS = _ACTIVATIONS | {"Mul": (0, 1), "RealDiv": (0,), "Neg": (0,), "Identity": (0,)}


class Factor(NamedTuple):
    """One gradient as a product; tensors and nodes by name."""

    gradient: str  # the tensor of TensorFlow's gradient
    product: str  # the tensor that takes its place
    factor: str  # the tensor that the incoming gradient is multiplied with
    nodes: list[Any]  # what makes the factor
    multiply: Any  # the node of the product


def of_chains(graph: Any, forward: Collection[str], results: Collection[str]) -> list[Factor]:
    """The gradients that can be products with a factor of some cost, of nodes with new names.

    `forward` names the nodes of the forward in a graph of it and its gradient, and `results` the
    tensors that are read besides.
    """
    chains = _Chains(graph, forward, results)
    return [
        factor
        for number, tensor in enumerate(chains.ends())
        if (factor := chains.factor(tensor, f"factor_{number}")) is not None
    ]


def multiplied(graph_def: Any, factors: Iterable[Factor]) -> Any:
    """The graph with products in the place of those gradients."""
    result = GraphDef()
    result.CopyFrom(graph_def)
    products = {_text(one.gradient): _text(one.product) for one in factors}
    for node in result.node:
        node.input[:] = [products.get(text, text) for text in node.input]
    for one in factors:
        result.node.extend([*one.nodes, one.multiply])
    return result


class _Chains:
    """What of a gradient is linear, element by element, in one tensor of it: a chain's root."""

    def __init__(self, graph: Any, forward: Collection[str], results: Collection[str]) -> None:
        self._graph = graph
        self._forward = forward
        self._results = results
        # Beside those, TensorFlow has made gradients of what nobody asked for.
        asked = [graph.get_tensor_by_name(name).op for name in results]
        self._asked = {op.name for op in _made_of(asked)}
        self._known: set[str] = set()  # nodes that are made of the forward alone
        self._roots: dict[str, Any] = {}  # by the tensors of all others
        self._places: dict[str, int] = {}  # of nodes: operands come first
        for place, op in enumerate(graph.get_operations()):
            self._places[op.name] = place
            if op.name in forward or self._is_made_of_forward(op):
                self._known.add(op.name)
                continue
            root = self._root(op)
            for y in op.outputs:
                self._roots[y.name] = y if root is None else root

    def _is_made_of_forward(self, op: Any) -> bool:
        """Whether it computes, element by element, with what the forward has, and constants."""
        plain = op.type == "Const" or op_traits.of(op.type).elementwise
        return plain and all(x.op.name in self._known for x in op.inputs)

    def _root(self, op: Any) -> Any | None:
        """The root of the chain that goes on with an operation; None if none does."""
        linear = self._linear(op)
        roots = {self._roots[x.name].name: self._roots[x.name] for x in linear}
        if len(roots) != 1:
            return None
        (y,), (root,) = op.outputs, roots.values()
        return root if all(_is_like(x, root) for x in (y, *linear)) else None

    def _linear(self, op: Any) -> list[Any]:
        """The operands in which an operation is linear, if all others are the forward's."""
        unknown = [i for i, x in enumerate(op.inputs) if x.op.name not in self._known]
        if op.type in _SUMS:
            is_linear = len(unknown) == len(op.inputs)
        else:
            is_linear = len(unknown) == 1 and unknown[0] in _SCALINGS.get(op.type, ())
        return [op.inputs[i] for i in unknown] if is_linear else []

    def ends(self) -> Iterator[Any]:
        """The tensors at the ends of chains: something else reads them."""
        for name, root in self._roots.items():
            tensor = self._graph.get_tensor_by_name(name)
            if tensor is root or tensor.op.name not in self._asked:
                continue
            readers = [op for op in tensor.consumers() if op.name in self._asked]
            onward = (self._roots[op.outputs[0].name] is root for op in readers)
            if name in self._results or not all(onward):
                yield tensor

    def factor(self, tensor: Any, scope: str) -> Factor | None:
        """The factor of a chain that ends with a tensor; None if it is too cheap, or too long."""
        needed = self._needed(tensor)
        if needed is None:
            return None
        writer = _Writer(scope, self._roots)
        for op in needed:
            writer.write(op)
        name = writer.made[tensor.name]
        if name is None or writer.operations < _LEAST_OPERATIONS:
            return None
        root = _text(self._roots[tensor.name].name)
        product = _node(f"{scope}/product", "Mul", [root, name], tensor.dtype)
        return Factor(tensor.name, f"{product.name}:0", f"{name}:0", writer.nodes, product)

    def _needed(self, tensor: Any) -> list[Any] | None:
        """The nodes of the gradient that a tensor is made of behind its root, operands first."""
        ends = {self._roots[tensor.name].op.name, *self._forward}
        walk = (op for op in _made_of([tensor.op], ends) if op.name not in ends)
        found = list(itertools.islice(walk, _MOST_NODES + 1))
        if len(found) > _MOST_NODES:
            return None
        return sorted(found, key=lambda op: self._places[op.name])


class _Writer:
    """Writes what a chain multiplies its root with: nodes that may stand in the forward."""

    def __init__(self, scope: str, roots: dict[str, Any]) -> None:
        self._scope = scope
        self._roots = roots
        self.nodes: list[Any] = []
        self.operations = 0
        # What stands for a tensor of the gradient. For one of the chain: the node of its factor, or
        # None for a factor of one. For one that is made of the forward alone: the node of the same.
        self.made: dict[str, str | None] = {}

    def write(self, op: Any) -> None:
        """Writes the factor of an operation's result, those of its operands being written."""
        (y,) = op.outputs
        factors = {
            i: self.made.get(x.name) for i, x in enumerate(op.inputs) if x.name in self._roots
        }
        if not factors:
            self.made[y.name] = self._copy(op, [self._known(x) for x in op.inputs])
        elif op.type == "Identity":
            self.made[y.name] = factors[0]
        elif op.type in _SUMS or op.type == "Neg":
            self.made[y.name] = self._sum(op, [f or self._one(y.dtype) for f in factors.values()])
        else:
            ((place, factor),) = factors.items()
            self.made[y.name] = self._scaled(op, place, factor)

    def _known(self, tensor: Any) -> str:
        return self.made.get(tensor.name) or _text(tensor.name)

    def _sum(self, op: Any, numbers: Sequence[str]) -> str:
        """A sum of factors, which may be single numbers."""
        if op.type != "AddN":
            return self._copy(op, numbers)
        total, *others = numbers
        for other in others:
            total = self._put(_node(self._new(), "AddV2", [total, other], op.outputs[0].dtype))
        return total

    def _scaled(self, op: Any, place: int, factor: str | None) -> str:
        """What an operation with one operand of the gradient, the one at `place`, multiplies."""
        dtype = op.outputs[0].dtype
        inputs = [self._known(x) for x in op.inputs]
        if op.type == "Mul":
            slope = inputs[1 - place]
        elif op.type in _ACTIVATIONS:  # its operands have the same shape
            inputs[place] = self._put(_node(self._new(), "OnesLike", [inputs[1 - place]], dtype))
            slope = self._copy(op, inputs)
        else:
            inputs[place] = factor or self._one(dtype)
            return self._copy(op, inputs)
        if factor is None:
            return slope
        return self._put(_node(self._new(), "Mul", [factor, slope], dtype))

    def _copy(self, op: Any, inputs: Sequence[str]) -> str:
        """The same operation on other operands, which waits for no other node."""
        node = NodeDef()
        node.CopyFrom(op.node_def)
        node.name = self._new()
        node.input[:] = inputs
        return self._put(node)

    def _one(self, dtype: tf.DType) -> str:
        node = NodeDef(name=self._new(), op="Const")
        node.attr["dtype"].type = dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1, dtype, []))
        return self._put(node)

    def _new(self) -> str:
        return f"{self._scope}/{len(self.nodes)}"

    def _put(self, node: Any) -> str:
        self.nodes.append(node)
        self.operations += 0 if node.op == "Const" else op_traits.of(node.op).operations
        return str(node.name)


def _made_of(operations: Iterable[Any], ends: Collection[str] = ()) -> Iterator[Any]:
    """Operations and what they read, each once, up to those that `ends` names."""
    waiting = list(operations)
    seen = {op.name for op in waiting}
    while waiting:
        op = waiting.pop()
        yield op
        for x in op.inputs if op.name not in ends else ():
            if x.op.name not in seen:
                seen.add(x.op.name)
                waiting.append(x.op)


def _node(name: str, kind: str, inputs: Sequence[str], dtype: tf.DType) -> Any:
    node = NodeDef(name=name, op=kind, input=inputs)
    node.attr["T"].CopyFrom(attr_value(dtype))
    return node


def _is_like(x: Any, y: Any) -> bool:
    known = x.dtype == y.dtype and x.dtype in _DTYPES and x.shape.is_fully_defined()
    return bool(known and x.shape == y.shape)


def _text(tensor: str) -> str:
    """A tensor as an input in a GraphDef, which leaves ":0" out."""
    return tensor.removesuffix(":0")
