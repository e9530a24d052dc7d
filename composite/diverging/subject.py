"""What is run in two ways: a graph of TensorFlow's own ops, with the author's places.

A composite in it is a call of a function of stock ops (composite.saving.portable), so that all
values of its body can be seen.
Not for: running it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.compiler import node_place
from composite.ops import functions
from composite.ops.op import CompositeOp, constant
from composite.reference.evaluate import Step
from composite.saving.portable import portable

_OURS = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("tensorflow", "keras", "importlib"))


class Subject(NamedTuple):
    """A graph, and what to feed it with.

    Attributes:
        name: what it is called in reports.
        source: the graph.
        given: for each of its inputs an array, a variable, or the handle of something else.
        graph: the graph that it was made of; it knows which line of Python made a node.
    """

    name: str
    source: functions.Body
    given: Sequence[Any]
    graph: Any

    def place(self, step: Step) -> str:
        """The author's place of a node: its own, or that of the nearest node around it."""
        for node in (step.node, *reversed(step.around)):
            if place := node_place.of_node(node):
                return place
        return self._line((*step.around, step.node)[0].name)

    def _line(self, name: str) -> str:
        """The line of Python that made a node of the outermost graph; "" if that is not known."""
        try:
            frames = self.graph.get_operation_by_name(name).traceback or ()
        except KeyError:  # a node that stands for another one
            return ""
        users = [f for f in frames if not _is_of_library(f.filename)]
        return f"{users[-1].filename}:{users[-1].lineno}" if users else ""


def _is_of_library(file: str) -> bool:
    return file.startswith(_OURS) or any(name in file for name in _LIBRARIES)


def of_call(op: CompositeOp, inputs: Sequence[Any], attrs: Any, *, gradient: bool) -> Subject:
    """A call of an op, or the gradient of one."""

    def call(*given: Any) -> Any:
        result = op(*given, **attrs)
        return () if isinstance(result, tf.Operation) else result

    return of_function(call, inputs, op.op_name, gradient=gradient)


def of_function(
    function: Callable[..., Any], inputs: Sequence[Any], name: str, *, gradient: bool
) -> Subject:
    """A call of a function, a tf.function or a Keras model, or the gradient of one."""
    leaves = [x if isinstance(x, tf.Variable) else tf.convert_to_tensor(x) for x in
              tf.nest.flatten(inputs)]  # fmt: skip
    # What a body may look at is a constant of the graph.
    free = [i for i, x in enumerate(leaves) if not isinstance(x, tf.Variable) and _is_free(x)]

    def flat(*tensors: Any) -> Any:
        given = list(leaves)
        for i, tensor in zip(free, tensors, strict=True):
            given[i] = tensor
        for i in set(range(len(leaves))) - set(free):
            if not isinstance(given[i], tf.Variable):
                given[i] = tf.constant(given[i].numpy())
        return function(*tf.nest.pack_sequence_as(list(inputs), given))

    specs = [tf.TensorSpec(leaves[i].shape, leaves[i].dtype) for i in free]
    called = _gradients(flat) if gradient else flat
    concrete = tf.function(called, input_signature=specs).get_concrete_function()
    return _subject(concrete, [leaves[i].numpy() for i in free], name)


def _is_free(tensor: Any) -> bool:
    return not constant(tensor).ByteSize()


def _gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of the floating inputs and variables, for fixed gradients of the outputs."""

    def pulled_back(*tensors: Any) -> Any:
        watched = [x for x in tensors if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            outputs = [y for y in tf.nest.flatten(function(*tensors)) if y.dtype.is_floating]
        seeds = [
            tf.random.stateless_uniform(tf.shape(y), (0, k), 0.5, 1.5, y.dtype)
            for k, y in enumerate(outputs)
        ]
        sources = [*watched, *tape.watched_variables()]
        found = tape.gradient(
            outputs, sources, seeds, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return [tf.convert_to_tensor(slope) for slope in found]

    return pulled_back


def _subject(concrete: Any, arrays: Sequence[Any], name: str) -> Subject:
    graph = concrete.graph
    variables = {id(v.handle): v for v in graph.variables}
    captured = [variables.get(id(x), x) for x in concrete.captured_inputs]
    outputs = [y for y in concrete.outputs if y is not None]
    source = functions.Body(
        portable(graph.as_graph_def()),
        [x.op.name for x in graph.inputs],
        [y.name for y in outputs],
        [x.dtype for x in graph.inputs],
        [y.dtype for y in outputs],
    )
    given = [*arrays, *(_array(x) for x in captured)]
    return Subject(name, source, given, graph)


def _array(value: Any) -> Any:
    is_handle = isinstance(value, tf.Variable) or functions.is_handle(value.dtype)
    return value if is_handle else np.asarray(value.numpy())
