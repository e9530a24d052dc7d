"""Runs an expansion node by node, on the calling thread.

A tf.function would need a thread of TensorFlow's inter-op pool. With one such thread, and that one
waiting for the kernel which is being checked, both would wait for ever; so nothing here uses it,
and control flow, whose ops run their branches in that pool, is walked here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Container, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.compiler import op_traits
from composite.ops import call, functions
from composite.reference import ulps

_CALLS = ("Case", "If", "PartitionedCall", "While")
_PRODUCTS = ("contraction", "einsum")  # families of ops
_SATURATING = (tf.int8, tf.int16, tf.uint8, tf.uint16)


Run = Callable[[Sequence[Any]], list[Any]]
"""Makes the results of an op of its inputs."""

Runner = Callable[[Any], Run]
"""Of a NodeDef, what makes its results of its inputs."""


class Step(NamedTuple):
    """A node that has run.

    Attributes:
        node: the NodeDef.
        path: the names of the nodes around it, outermost first; behind that of a loop stands the
            number of the iteration.
        around: these nodes.
        inputs: the tensors that it took.
        results: the tensors that it gave.
        is_call: whether it called a function, whose nodes were steps before.
    """

    node: Any
    path: tuple[str, ...]
    around: tuple[Any, ...]
    inputs: Sequence[Any]
    results: Sequence[Any]
    is_call: bool


class Roundings(NamedTuple):
    """What becomes of numbers on their way through a body.

    Attributes:
        results: of each floating result that an op computes, but for whole numbers that follow from
            constants, given the op's name; None for the results as they are.
        factors: of each float32 factor of a product; None for the factors as they are.
        sums: of all results of a sum or product of terms, before `results`, given its name, what
            runs it again, and its inputs; None for the results as they are.
    """

    results: Callable[[str, Any], Any] | None = None
    factors: Callable[[Any], Any] | None = None
    sums: Callable[[str, Run, Sequence[Any], list[Any]], list[Any]] | None = None


NONE = Roundings()


def evaluate(
    source: functions.Body,
    inputs: Sequence[Any],
    roundings: Roundings = NONE,
    *,
    seen: Callable[[Step], None] | None = None,
    device: str = "CPU:0",
) -> list[Any]:
    """The outputs of `source` for these inputs, as eager tensors on the CPU, or on a device.

    seen: is told of each node when it has run.
    """
    return Evaluator(source, device).run(inputs, roundings, seen=seen)


class Evaluator:
    """Runs a body any number of times; what does not depend on its inputs is found once."""

    def __init__(
        self, source: functions.Body, device: str = "CPU:0", runner: Runner | None = None
    ) -> None:
        """`runner`: what runs a node that calls no function; TensorFlow's op by default."""
        self._source = source
        self._device = device
        self._runner = runner or _eager
        self._library = {f.signature.name: f for f in source.graph_def.library.function}
        self._graphs: dict[str, _Graph] = {}

    def run(
        self,
        inputs: Sequence[Any],
        roundings: Roundings = NONE,
        *,
        seen: Callable[[Step], None] | None = None,
    ) -> list[Any]:
        """As `evaluate`."""
        with tf.device(self._device):
            tensors = [
                x if functions.is_handle(dtype) else tf.constant(x, dtype)
                for x, dtype in zip(inputs, self._source.input_dtypes, strict=True)
            ]
            return _Evaluation(self, roundings, seen).function("", tensors)

    def graph(self, name: str) -> _Graph:
        """A function of the body's library, or with no name the body itself."""
        if name not in self._graphs:
            body = functions.body_of(self._library[name], self._library) if name else self._source
            self._graphs[name] = _Graph(body, self._library, self._runner)
        return self._graphs[name]


class _Graph:
    """The nodes of a body in an order in which they can run."""

    def __init__(self, source: functions.Body, library: Container[str], runner: Runner) -> None:
        self.inputs = source.inputs
        self.outputs = [_reference(x) for x in source.outputs]
        self.nodes: list[_Node] = []
        nodes = {node.name: node for node in source.graph_def.node}
        fixed: set[str] = set()  # nodes whose results follow from constants alone
        order = TopologicalSorter({n: [_node(x) for x in nodes[n].input] for n in nodes})
        for name in order.static_order():
            if name not in source.inputs:
                if all(_node(x) in fixed for x in nodes[name].input):
                    fixed.add(name)
                self.nodes.append(_Node(nodes[name], library, runner, fixed=name in fixed))
        self._find_last_uses()

    def _find_last_uses(self) -> None:
        """Tells each node which results are not read after it."""
        read = {name for name, _ in self.outputs}
        for node in reversed(self.nodes):
            names = {node.node.name, *(name for name, _ in node.inputs)}
            node.lasts = tuple(names - read)
            read |= names


class _Node:
    """A node, and what is to be known of it each time that it runs."""

    def __init__(self, node: Any, library: Container[str], runner: Runner, *, fixed: bool) -> None:
        self.node = node
        self._runner = runner
        self.fixed = fixed
        self.inputs = [_reference(x) for x in node.input if not x.startswith("^")]
        kind = node.op.removeprefix("Stateless").removeprefix("Stateful")
        # What it calls: "" for an op that calls no function.
        self.calls = "function" if node.op in library else kind if kind in _CALLS else ""
        traits = op_traits.of(node.op)
        self.multiplies = traits.family in _PRODUCTS
        self.computes = node.op not in {"Cast", "Const"} and not traits.moves_data
        self.sums = node.op in ulps.OF_TERMS or node.op == "MaxPool3D"
        self.lasts: tuple[str, ...] = ()  # results that no later node reads

    @functools.cached_property
    def run(self) -> Run:
        """Runs the op."""
        return self._runner(self.node)


class _Evaluation:
    """One run of a body."""

    def __init__(
        self,
        evaluator: Evaluator,
        roundings: Roundings,
        seen: Callable[[Step], None] | None,
    ) -> None:
        self._evaluator = evaluator
        self._roundings = roundings
        self._seen = seen
        self._path: tuple[str, ...] = ()
        self._around: tuple[Any, ...] = ()

    def function(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        """The results of a function, or with no name of the body itself."""
        graph = self._evaluator.graph(name)
        values = {name: [tensor] for name, tensor in zip(graph.inputs, inputs, strict=True)}
        for node in graph.nodes:
            values[node.node.name] = self._run(node, [values[n][k] for n, k in node.inputs])
            for one in node.lasts:
                del values[one]
        return [values[n][k] for n, k in graph.outputs]

    def _run(self, own: _Node, inputs: list[Any]) -> list[Any]:
        path, around, node = self._path, self._around, own.node
        if not own.calls:
            results = self._op(own, inputs)
        else:
            self._path, self._around = (*path, node.name), (*around, node)
            results = self._called(own, inputs)
            self._path, self._around = path, around
        if self._seen is not None:
            self._seen(Step(node, path, around, inputs, results, bool(own.calls)))
        return results

    def _called(self, own: _Node, inputs: list[Any]) -> list[Any]:
        """The results of the functions that a node calls."""
        node = own.node
        if own.calls == "function":
            return self.function(node.op, inputs)
        if own.calls == "PartitionedCall":
            return self.function(node.attr["f"].func.name, inputs)
        if own.calls == "If":
            branch = "then_branch" if _truth(inputs[0]) else "else_branch"
            return self.function(node.attr[branch].func.name, inputs[1:])
        if own.calls == "Case":
            branches = node.attr["branches"].list.func
            index = int(inputs[0])
            last = len(branches) - 1
            return self.function(branches[index if 0 <= index < last else last].name, inputs[1:])
        return self._while(node, inputs)

    def _op(self, own: _Node, inputs: list[Any]) -> list[Any]:
        rounded, factor, summed = self._roundings
        if factor is not None and own.multiplies:
            inputs = [factor(x) if x.dtype == tf.float32 else x for x in inputs]
        results = own.run(inputs)
        if summed is not None and own.sums:
            results = summed(own.node.op, own.run, inputs, results)
        if rounded is None or not own.computes:
            return results
        # A whole number that constants give is exact: (-x)^2.0000001 is no number.
        return [
            rounded(own.node.op, x)
            if x.dtype.is_floating and not (own.fixed and _is_whole(x))
            else x
            for x in results
        ]

    def _while(self, node: Any, state: list[Any]) -> list[Any]:
        condition, body = node.attr["cond"].func.name, node.attr["body"].func.name
        path = self._path
        for iteration in itertools.count():
            self._path = (*path, str(iteration))
            if not _truth(self.function(condition, state)[0]):
                break
            state = self.function(body, state)
        return state


def is_saturated(node: Any) -> bool:
    """Whether `evaluate` gives other results than TensorFlow's op where a float does not fit."""
    if node.op != "Cast":
        return False
    source, target = (tf.as_dtype(node.attr[name].type) for name in ("SrcT", "DstT"))
    return source.is_floating and target in _SATURATING


def _eager(node: Any) -> Run:
    run = call.eager_runner(node)
    if not is_saturated(node):
        return run
    return lambda inputs: [_saturated(inputs[0], run(inputs)[0])]


def _saturated(x: Any, cast: Any) -> Any:
    """What a cast gives, but where a float does not fit an integer of 8 or 16 bits.

    There TensorFlow's result is another one in the vectors of its loop and behind the last of them:
    this is that of the vectors, for all elements, as kernels have it.
    """
    info, wide = np.iinfo(cast.dtype.as_numpy_dtype), x.numpy().astype(np.float64)
    fits = (np.trunc(wide) >= info.min) & (np.trunc(wide) <= info.max)
    if fits.all():
        return cast
    limit = np.where((wide > info.max) & (wide < 2.0**31), info.max, info.min)
    return tf.constant(np.where(fits, cast.numpy(), limit.astype(info.dtype)))


def _node(reference: str) -> str:
    return reference.removeprefix("^").partition(":")[0]


def _reference(tensor: str) -> tuple[str, int]:
    name, _, output = tensor.partition(":")
    return name, int(output or 0)


def _is_whole(tensor: Any) -> bool:
    return bool(tf.reduce_all(tensor == tf.round(tensor)))


def _truth(tensor: Any) -> bool:
    """What If and While take for true: a scalar by its value, anything else by having elements."""
    return bool(tensor.numpy()) if tensor.shape.rank == 0 else tensor.shape.num_elements() > 0
