"""Measures a kernel against what TensorFlow would run instead, on the node's own terms.

Both are measured as nodes of a graph. One function holds enough copies of the op to be timed
(repeated.py). They run one after the other, and each has its own inputs, since a real model does
not read the same weights again. The nodes run the kernel in one function and the expansion in
another, where grappler fuses the ops as it fuses hand-written ones. The time of an empty function
with the same signature is subtracted, so the result contains no Python. Constant inputs are
constants of the graph too. Large constants of a kernel, which takes them packed, are inputs that
are marked as constant instead, since TensorFlow copies graphs many times.

If both are limited by memory, their times are equal; inputs that fit into the caches then show the
difference.

On a GPU, a run ends when the device has finished. So the time of a node is that of the device or of
the host, whichever is longer, as in a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.binding.records import BACKEND, CONSTANTS, NUMERICS, UNCOUNTED, AttrValue
from composite.compiler import account
from composite.measuring import drawing, repeated, rounds, turns
from composite.measuring.decisions import Times
from composite.measuring.repeated import HOST
from composite.ops import call

Sizes = Mapping[int, int]
"""By the position of an input that is a scalar, its value."""

_COPIES = 16
_CHAIN = 0.002  # seconds: there are no more copies than take this long
_MEMORY = 64 << 20  # the most bytes of inputs
_CACHED_MEMORY = 4 << 20
# The most bytes of constants of several nodes: tracing and grappler copy them several times, and
# TensorFlow keeps functions until the process ends.
_CONSTANTS = 4 << 20
# Bytes of a constant from which on passing it takes no time compared with the kernel.
_LARGE = 1 << 20
# For sizes other than the requested one:
_SWEEP_COPIES = 8
_SWEEP_MEMORY = 16 << 20
_SWEEP_BUDGET = 0.03


@account.step("measure")
def measure(  # noqa: PLR0913, PLR0917 - a call, and where it is measured
    op_name: str,
    arguments: Callable[[Sequence[Any]], Mapping[str, Any]],
    stamps: Mapping[str, AttrValue],
    specs: Sequence[tf.TensorSpec],
    constants: Sequence[int] = (),
    sizes: Sizes = MappingProxyType({}),
    device: str = HOST,
    *,
    settle: bool = True,
    fuses: bool = True,
) -> Times:
    """Times an installed kernel. `arguments(inputs)` makes the keywords of a call of the op.

    `constants`: the inputs that never change. `sizes`: the values of inputs that are sizes.
    `device`: TensorFlow's name of the nodes' device. `settle`: if the result is close, it is
    measured again with inputs that stay in the caches, as far as they fit. `fuses`: whether
    grappler's remapper may run, which must not see empty products: TF 2.21 ends the process then.
    """
    known = _known(specs, constants)
    varying = _varying(specs, known)
    own = _varying_sizes(specs, known, sizes)
    with turns.preparing():
        ways = _Ways.of(op_name, _Call(arguments, stamps, known, device), varying, fuses=fuses)

    def timed(copies: int) -> tuple[Times, int]:
        """The times of this many copies, or of fewer if those suffice."""
        with turns.preparing():
            functions = ways.times(1)
            inputs = _taken(functions, varying, 1, own)
            enough = math.ceil(_CHAIN / max(_seconds_of_one(functions, inputs), rounds.LEAST))
            if (copies := min(copies, enough)) > 1:
                functions = ways.times(copies)
                inputs = _taken(functions, varying, copies, own)
        with turns.measuring():
            found = rounds.settled(lambda budget: rounds.taken(functions, inputs, budget), copies)
        return rounds.times(found, copies), copies

    times, copies = timed(copies_of(varying, known, _COPIES, _MEMORY))
    fit = copies_of(varying, known, _COPIES, _CACHED_MEMORY)
    return timed(fit)[0] if settle and times.close and fit < copies else times


@account.step("measure")
def sweep(  # noqa: PLR0913, PLR0917 - as measure, and the cases
    op_name: str,
    arguments: Callable[[Sequence[Any]], Mapping[str, Any]],
    stamps: Mapping[str, AttrValue],
    specs: Sequence[tf.TensorSpec],
    cases: Sequence[Sequence[tuple[int, ...]]],
    constants: Sequence[int] = (),
    sizes: Sequence[Sizes] = (),
    device: str = HOST,
    *,
    fuses: bool = True,
) -> list[Times]:
    """Times an installed kernel at several sizes, faster and less exactly than `measure`.

    Dims that differ are None in `specs`, so that one graph serves all cases; the largest case comes
    last. `sizes`: for each case the values of size inputs; empty if there are none.
    """
    known = _known(specs, constants)
    varying = _varying(specs, known)
    exact = [
        _varying(
            [tf.TensorSpec(shape, spec.dtype) for shape, spec in zip(shapes, specs, strict=True)],
            known,
        )
        for shapes in cases
    ]
    copies = copies_of(exact[-1], known, _SWEEP_COPIES, _SWEEP_MEMORY)
    node = _Call(arguments, stamps, known, device)
    with turns.preparing():
        functions = _Ways.of(op_name, node, varying, fuses=fuses).times(copies)
        inputs = [
            _taken(functions, case, copies, _varying_sizes(specs, known, own))
            for case, own in zip(exact, sizes or [{}] * len(exact), strict=True)
        ]
    with turns.measuring():
        found = [rounds.taken(functions, one, _SWEEP_BUDGET) for one in inputs]
    return [rounds.times(one, copies) for one in found]


class Chain:
    """Calls of an op in a graph that run the kernel installed last, to time several kernels.

    Takes the arguments of `measure`; a kernel that covers the specs must be installed.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - as measure
        self,
        op_name: str,
        arguments: Callable[[Sequence[Any]], Mapping[str, Any]],
        stamps: Mapping[str, AttrValue],
        specs: Sequence[tf.TensorSpec],
        constants: Sequence[int] = (),
        sizes: Sizes = MappingProxyType({}),
    ) -> None:
        known = _known(specs, constants)
        varying = _varying(specs, known)
        self.copies = copies_of(varying, known, _COPIES, _MEMORY)
        node = _Call(arguments, stamps, known)
        ways = _Ways.of(op_name, node, varying)
        self._kernel, self._empty = ways.kernel.times(self.copies), ways.empty.times(self.copies)
        own = _varying_sizes(specs, known, sizes)
        self._inputs = _taken((self._kernel, self._empty), varying, self.copies, own)

    def seconds(self) -> float:
        """The time of all calls, including TensorFlow's overhead."""
        return rounds.seconds(self._kernel, self._inputs)

    def overhead(self) -> float:
        """TensorFlow's current overhead."""
        return rounds.seconds(self._empty, self._inputs)


class _Call(NamedTuple):
    """A call of the op: its keywords, the node's attributes, and the constant inputs."""

    arguments: Callable[[Sequence[Any]], Mapping[str, Any]]
    stamps: Mapping[str, AttrValue]
    known: Mapping[int, Any]  # by position
    device: str = HOST
    held: Sequence[int] = ()  # the constants that are inputs of the graph

    def by_kernel(self) -> _Call:
        """The call that runs the kernel."""
        constants = AttrValue(list=AttrValue.ListValue(i=sorted(self.known)))
        stamps = {**route("tvm"), **self.stamps} | ({CONSTANTS: constants} if self.known else {})
        held = [i for i, array in self.known.items() if array.nbytes >= _LARGE]
        return self._replace(stamps=stamps, held=held)

    def by_expansion(self) -> _Call:
        """The call that runs the expansion."""
        return self._replace(stamps={**route("tf"), **self.stamps})

    def traced(self, op_name: str, specs: Sequence[tf.TensorSpec]) -> repeated.Call:
        """One call of the op, of inputs that are no constants of the `specs`."""

        def one(*inputs: Any) -> Any:
            keywords = self._keywords(inputs[: len(specs)], inputs[len(specs) :])
            return call.graph_call(op_name, keywords, self.stamps, None)

        held = {i: self.known[i] for i in self.held}
        return repeated.trace(one, specs, self.device, self.known, held)

    def _keywords(self, own: Sequence[Any], held: Sequence[Any]) -> Mapping[str, Any]:
        """The keywords of a call with its `own` inputs and the `held` constants."""
        given, known = iter(own), self.known
        inputs = dict(zip(self.held, held, strict=True))
        for i in range(len(own) + len(known)):
            if i not in inputs:
                inputs[i] = repeated.constant(known[i], i) if i in known else next(given)
        return self.arguments([inputs[i] for i in sorted(inputs)])


class _Ways(NamedTuple):
    """A call by the kernel, by the expansion, and without a node, to be timed."""

    kernel: repeated.Call
    expansion: repeated.Call
    empty: repeated.Call

    @classmethod
    def of(
        cls, op_name: str, node: _Call, specs: Sequence[tf.TensorSpec], *, fuses: bool = True
    ) -> _Ways:
        """Traces them. `fuses`: as `measure`."""
        empty = repeated.trace(lambda *inputs: inputs[:1], specs, node.device)
        return cls(
            node.by_kernel().traced(op_name, specs),
            node.by_expansion().traced(op_name, specs)._replace(optimized=True, fuses=fuses),
            empty,
        )

    def times(self, copies: int) -> list[repeated.Function]:
        """The functions of this many calls each."""
        return [way.times(copies) for way in self]


def _known(specs: Sequence[tf.TensorSpec], constants: Sequence[int]) -> dict[int, Any]:
    return {i: drawing.draw(specs[i], np.random.default_rng(i)) for i in constants}


def _varying(specs: Sequence[tf.TensorSpec], known: Mapping[int, Any]) -> list[tf.TensorSpec]:
    return [spec for i, spec in enumerate(specs) if i not in known]


def _varying_sizes(
    specs: Sequence[tf.TensorSpec], known: Mapping[int, Any], sizes: Sizes
) -> list[int | None]:
    """For each varying input, its value if it is a size, else None."""
    return [sizes.get(i) for i in range(len(specs)) if i not in known]


def _seconds_of_one(functions: Sequence[repeated.Function], inputs: Sequence[Any]) -> float:
    """A rough time of the faster of kernel and expansion, from functions of one node."""
    # Other kernels are made meanwhile, so the minimum of several rounds is taken.
    found = rounds.taken(functions, inputs, _CHAIN, 1)
    fastest = min(min(one.kernel, one.expansion) for one in found)
    return fastest - min(one.nothing for one in found)


def route(backend: str) -> dict[str, AttrValue]:
    """The stamps of nodes that run the kernel ("tvm") or the expansion ("tf")."""
    return {
        BACKEND: AttrValue(s=backend.encode()),
        NUMERICS: AttrValue(s=b"fast"),  # regardless of the process; stamps may override it
        UNCOUNTED: AttrValue(b=True),  # composite.stats() counts only the user's calls
    }


def copies_of(
    specs: Sequence[tf.TensorSpec], constants: Mapping[int, Any], most: int, memory: int
) -> int:
    """How many calls a function may have, `most` at most, for its inputs and constants to fit."""
    size = sum(s.shape.num_elements() * s.dtype.size for s in specs)
    fixed = sum(array.nbytes for array in constants.values())
    return int(max(1, min(most, memory // max(size, 1), _CONSTANTS // max(fixed, 1))))


def _taken(
    functions: Sequence[repeated.Function],
    specs: Sequence[tf.TensorSpec],
    copies: int,
    sizes: Sequence[int | None],
) -> list[Any]:
    """Inputs for all copies that the functions accept; each function has run once on them."""
    return drawing.accepted(functions, specs, sizes, copies, functions[0].device)
