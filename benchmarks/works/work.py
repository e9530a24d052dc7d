"""A work: layers run as one call, described once for all sides.

`Work` is small and travels between processes; `Work.program` makes the arrays of it, the same in
each process. Nothing here is specific to a side.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.works.layers import LAYERS, Array, Layer, Shape

CALL_SECONDS = 4e-3
"""What one call of a stack takes at the least: what a call costs before any work is spread thin."""

_FEWEST_DISTINCT = 8
# A machine that is meant to be faster than any: the depth of a stack is no measurement.
_FLOPS, _BYTES, _NODE = 600e9, 80e9, 2e-6


@dataclass(frozen=True)
class Program:
    """What a side builds: `x` goes through the layers of `steps`, one after the other.

    Attributes:
        kind: which of LAYERS each of them is.
        x: the input.
        y: the shape of the output.
        weights: the arrays that the layers take.
        steps: for each layer, the places of its weights among `weights`.
        constant: whether the weights are constants of the graph, else inputs of it as `x` is.
    """

    kind: str
    x: Array
    y: Shape
    weights: list[Array]
    steps: list[tuple[int, ...]]
    constant: bool

    @functools.cached_property
    def reference(self) -> Array:
        """The output in float64."""
        y = self.x.astype(np.float64)
        for step in self.steps:
            y = LAYERS[self.kind].reference(y, *(self.weights[i].astype(np.float64) for i in step))
        return y

    def difference(self, result: Array) -> float:
        """How far a result is from the reference, in units of the reference's largest value.

        ValueError when it has another shape, or is further off than float32 explains.
        """
        expected = self.reference
        if result.shape != expected.shape:
            raise ValueError(
                f"{self.kind}: the result has shape {result.shape}, not {expected.shape}"
            )
        apart = float(np.abs(result - expected).max() / np.abs(expected).max())
        if not apart < 1e-4 * math.sqrt(len(self.steps)):
            raise ValueError(f"{self.kind}: the result is {apart:.1g} away from the reference")
        return apart


@dataclass(frozen=True)
class Work:
    """A stack of `depth` layers of one kind and shape, timed as one call.

    Layers with another output than input alternate with the layer that leads back. `distinct`:
    each layer has weights of its own, as in a model; else one layer repeats (or takes turns with
    the one that leads back), whose weights stay in the cache. `constant`: the weights are known
    when the graph is built.
    """

    kind: str
    shape: Shape
    depth: int = 1
    constant: bool = False
    distinct: bool = False

    @property
    def layer(self) -> Layer:
        """The kind of its layers."""
        return LAYERS[self.kind]

    @property
    def title(self) -> str:
        """Kind and shape: "dense 32x1024x1024"."""
        return f"{self.kind} {'x'.join(map(str, self.shape))}"

    @property
    def form(self) -> str:
        """How it is run: "a call", or a node of which stack."""
        weights = ""
        if self.layer.weights(self.shape):
            weights = ", weights constant" if self.constant else ", weights as inputs"
        if self.depth == 1:
            return f"a call{weights}"
        return f"a node of {self.depth}{weights}" + (" and distinct" if self.distinct else "")

    def stacked(self, *, distinct: bool = False) -> Work:
        """The same layer as a stack, deep enough to take CALL_SECONDS; itself where one does."""
        flops, moved = self.layer.flops(self.shape), self.layer.bytes(self.shape)
        depth = math.ceil(CALL_SECONDS / (max(flops / _FLOPS, moved / _BYTES) + _NODE))
        if distinct:
            depth = max(depth, _FEWEST_DISTINCT)
        shapes = self._shapes()
        if depth == 1 or shapes is None:
            return self
        depth = min(math.ceil(depth / len(shapes)) * len(shapes), self.layer.deepest)
        return replace(self, depth=depth, distinct=distinct)

    def program(self) -> Program:
        """The arrays, drawn anew: the same ones in every process."""
        random = np.random.default_rng(0)
        x = _draw(random, self.layer.x(self.shape), 1.0, 0.0)
        shapes = (self._shapes() if self.depth > 1 else None) or [self.shape]
        weights: list[Array] = []
        steps: list[tuple[int, ...]] = []
        for number in range(self.depth):
            if not self.distinct and number >= len(shapes):
                steps.append(steps[number - len(shapes)])
                continue
            drawn = [
                _draw(random, *weight)
                for weight in self.layer.weights(shapes[number % len(shapes)])
            ]
            steps.append(tuple(range(len(weights), len(weights) + len(drawn))))
            weights += drawn
        y = self.layer.y(shapes[(self.depth - 1) % len(shapes)])
        return Program(self.kind, x, y, weights, steps, self.constant)

    def _shapes(self) -> list[Shape] | None:
        """The shapes of layers that take turns in a stack; None where nothing leads back."""
        if self.layer.x(self.shape) == self.layer.y(self.shape):
            return [self.shape]
        return None if self.layer.back is None else [self.shape, self.layer.back(self.shape)]


def work_of(fields: dict[str, Any]) -> Work:
    """A work from its fields as JSON hands them on."""
    return Work(**{**fields, "shape": tuple(fields["shape"])})


def _draw(random: np.random.Generator, shape: Shape, scale: float, mean: float) -> Array:
    return random.standard_normal(shape, np.float32) * np.float32(scale) + np.float32(mean)
