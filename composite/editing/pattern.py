"""A pattern: the graph of a function, to be found in others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from composite.editing.traced import Traced, trace

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Pattern:
    """A graph with open inputs.

    Attributes:
        graph: the nodes.
        specs: what inputs have to be, in their order; None where only the graph's ops say it.
    """

    graph: Traced
    specs: tuple[tf.TensorSpec | None, ...]

    @functools.cached_property
    def ops(self) -> list[str]:
        """The nodes that compute: those that lead to results, without inputs and constants."""
        found: list[str] = []
        pending = [of.node for of in self.graph.outputs]
        while pending:
            name = pending.pop(0)
            if name not in found and name not in self.graph.inputs and not self.is_constant(name):
                found.append(name)
                pending += [of.node for of in self.graph.operands(name)]
        return found

    def is_constant(self, name: str) -> bool:
        """Whether a node is a constant."""
        return bool(self.graph.nodes[name].op == "Const")

    @functools.cached_property
    def constants(self) -> dict[str, Array]:
        """The values of the constants."""
        nodes = self.graph.nodes.items()
        return {n: tf.make_ndarray(d.attr["value"].tensor) for n, d in nodes if d.op == "Const"}

    @property
    def root(self) -> str:
        """The op of the node that gives the first result."""
        return str(self.graph.nodes[self.graph.outputs[0].node].op)


def patterns(
    function: Callable[..., Any], inputs: Sequence[tf.TensorSpec] | None, dtypes: Iterable[int]
) -> list[Pattern]:
    """What a function looks like in graphs that have these dtypes.

    Without `inputs`, a pattern for each dtype, of tensors whose rank is not known and of matrices,
    as far as the function takes them: some functions run other ops on matrices.

    ValueError if it is no pattern; what it raises, if it takes no such inputs.
    """
    word = getattr(function, "__name__", str(function))
    if inputs is not None:
        return [_checked(Pattern(trace(function, list(inputs), {}), tuple(inputs)), word)]
    count = _count_of_inputs(function, word)
    found: dict[str, Pattern] = {}
    refused: Exception | None = None
    for dtype in map(tf.as_dtype, dtypes):
        for shape in (None, (None, None)):
            try:
                graph = trace(function, [tf.TensorSpec(shape, dtype)] * count, {})
            except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
                refused = refused or error
                continue
            pattern = _checked(Pattern(graph, (None,) * count), word)
            found.setdefault(_text(pattern), pattern)
    if not found and refused is not None:
        raise ValueError(
            f"{word} cannot be traced as a pattern with inputs of one dtype and any shape: state "
            f"them, composite.Match(pattern={word}, inputs=[tf.TensorSpec(...), ...]). {refused}"
        ) from refused
    return list(found.values())


def _count_of_inputs(function: Callable[..., Any], word: str) -> int:
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise ValueError(f"{word} takes any number of inputs: a pattern has a parameter for each")
    return sum(1 for p in parameters if p.default is p.empty)


def _checked(pattern: Pattern, word: str) -> Pattern:
    if not pattern.graph.outputs:
        raise ValueError(f"{word} returns no tensor: a pattern returns what is to be replaced")
    for of in pattern.graph.outputs:
        if of.node not in pattern.ops or pattern.graph.nodes[of.node].op == "Placeholder":
            raise ValueError(f"{word} returns an input or a constant, which computes nothing")
    taken = {of.node for name in pattern.ops for of in pattern.graph.operands(name)}
    if not taken >= set(pattern.graph.inputs):
        raise ValueError(f"{word} has an input that its results do not depend on: leave it out")
    return pattern


def _text(pattern: Pattern) -> str:
    """The same for equal graphs, but for what they were told of their inputs."""
    nodes = [pattern.graph.nodes[name] for name in (*pattern.ops, *pattern.constants)]
    return "\n".join([*map(str, nodes), *map(str, pattern.graph.outputs)])
