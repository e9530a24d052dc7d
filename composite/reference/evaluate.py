"""Runs an expansion node by node, on the calling thread.

A tf.function would need a thread of TensorFlow's inter-op pool. With one such thread, and that one
waiting for the kernel which is being checked, both would wait for ever; so nothing here uses it,
and control flow, whose ops run their branches in that pool, is walked here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.compiler import op_traits
from composite.ops import call, functions

_PRODUCTS = ("contraction", "einsum")  # families of ops
_EXP_MINUS_ONE = ("Elu", "Selu")  # TensorFlow rounds e^x, of which 1 is then taken off
_SATURATING = (tf.int8, tf.int16, tf.uint8, tf.uint16)


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
            constants; None for the results as they are.
        factors: of each float32 factor of a product; None for the factors as they are.
    """

    results: Callable[[Any], Any] | None = None
    factors: Callable[[Any], Any] | None = None


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
    library = {f.signature.name: f for f in source.graph_def.library.function}
    with tf.device(device):
        tensors = [
            x if functions.is_handle(dtype) else tf.constant(x, dtype)
            for x, dtype in zip(inputs, source.input_dtypes, strict=True)
        ]
        return _Evaluation(library, roundings, seen).graph(source, tensors)


class _Evaluation:
    def __init__(
        self,
        library: dict[str, Any],
        roundings: Roundings,
        seen: Callable[[Step], None] | None,
    ) -> None:
        self._library = library
        self._roundings = roundings
        self._seen = seen
        self._bodies: dict[str, functions.Body] = {}
        self._path: tuple[str, ...] = ()
        self._around: tuple[Any, ...] = ()

    def graph(self, source: functions.Body, inputs: Sequence[Any]) -> list[Any]:
        values: dict[str, list[Any]] = {
            name: [tensor] for name, tensor in zip(source.inputs, inputs, strict=True)
        }
        nodes = {node.name: node for node in source.graph_def.node}
        fixed: set[str] = set()  # nodes whose results follow from constants alone
        order = TopologicalSorter({n: [_node(x) for x in nodes[n].input] for n in nodes})
        for name in order.static_order():
            if name not in values:
                node = nodes[name]
                own = [_value(x, values) for x in node.input if not x.startswith("^")]
                if all(_node(x) in fixed for x in node.input):
                    fixed.add(name)
                values[name] = self._run(node, own, fixed=name in fixed)
        return [_value(x, values) for x in source.outputs]

    def _run(self, node: Any, inputs: list[Any], *, fixed: bool) -> list[Any]:
        path, around = self._path, self._around
        self._path, self._around = (*path, node.name), (*around, node)
        called = self._called(node, inputs)
        results = self._op(node, inputs, fixed=fixed) if called is None else called
        self._path, self._around = path, around
        if self._seen is not None:
            self._seen(Step(node, path, around, inputs, results, called is not None))
        return results

    def _called(self, node: Any, inputs: list[Any]) -> list[Any] | None:
        """The results of the functions that a node calls; None for an op that calls none."""
        if node.op in self._library:
            return self._function(node.op, inputs)
        kind = node.op.removeprefix("Stateless").removeprefix("Stateful")
        if kind == "PartitionedCall":
            return self._function(node.attr["f"].func.name, inputs)
        if kind == "If":
            branch = "then_branch" if _truth(inputs[0]) else "else_branch"
            return self._function(node.attr[branch].func.name, inputs[1:])
        if kind == "Case":
            branches = node.attr["branches"].list.func
            index = int(inputs[0])
            last = len(branches) - 1
            return self._function(branches[index if 0 <= index < last else last].name, inputs[1:])
        if kind == "While":
            return self._while(node, inputs)
        return None

    def _op(self, node: Any, inputs: list[Any], *, fixed: bool) -> list[Any]:
        rounded, factor = self._roundings
        if factor is not None and op_traits.of(node.op).family in _PRODUCTS:
            inputs = [factor(x) if x.dtype == tf.float32 else x for x in inputs]
        results = call.eager_node(node, inputs)
        if node.op == "Cast":
            return [_saturated(inputs[0], results[0])]
        if rounded is None or node.op == "Const" or op_traits.of(node.op).moves_data:
            return results
        if node.op in _EXP_MINUS_ONE:
            return [rounded(x + 1) - 1 for x in results]
        # A whole number that constants give is exact: (-x)^2.0000001 is no number.
        return [
            rounded(x) if x.dtype.is_floating and not (fixed and _is_whole(x)) else x
            for x in results
        ]

    def _while(self, node: Any, state: list[Any]) -> list[Any]:
        condition, body = node.attr["cond"].func.name, node.attr["body"].func.name
        path = self._path
        for iteration in itertools.count():
            self._path = (*path, str(iteration))
            if not _truth(self._function(condition, state)[0]):
                break
            state = self._function(body, state)
        return state

    def _function(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        if name not in self._bodies:
            self._bodies[name] = functions.body_of(self._library[name], self._library)
        return self.graph(self._bodies[name], inputs)


def _saturated(x: Any, cast: Any) -> Any:
    """What a cast gives, but where a float does not fit an integer of 8 or 16 bits.

    There TensorFlow's result is another one in the vectors of its loop and behind the last of them:
    this is that of the vectors, for all elements, as kernels have it.
    """
    if not x.dtype.is_floating or cast.dtype not in _SATURATING:
        return cast
    info, wide = np.iinfo(cast.dtype.as_numpy_dtype), x.numpy().astype(np.float64)
    fits = (np.trunc(wide) >= info.min) & (np.trunc(wide) <= info.max)
    if fits.all():
        return cast
    limit = np.where((wide > info.max) & (wide < 2.0**31), info.max, info.min)
    return tf.constant(np.where(fits, cast.numpy(), limit.astype(info.dtype)))


def _node(reference: str) -> str:
    return reference.removeprefix("^").partition(":")[0]


def _value(reference: str, values: dict[str, list[Any]]) -> Any:
    name, _, output = reference.partition(":")
    return values[name][int(output or 0)]


def _is_whole(tensor: Any) -> bool:
    return bool(tf.reduce_all(tensor == tf.round(tensor)))


def _truth(tensor: Any) -> bool:
    """What If and While take for true: a scalar by its value, anything else by having elements."""
    return bool(tensor.numpy()) if tensor.shape.rank == 0 else tensor.shape.num_elements() > 0
