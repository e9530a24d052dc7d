"""Measures a kernel that code of XLA calls against the code that XLA makes of the expansion.

Both are loops that XLA compiles, with a few calls in each trip. An elementwise op stands before
each call and one behind it: XLA fuses them with the ops of the expansion, and not with a call of a
kernel, as in a model. Each call waits for the one before it. Inputs pass a barrier in each trip, so
that nothing of a call is computed once for all trips. The time of the loop without a trip is
subtracted. Of a region only the last result has an op behind it: the others are kept for later,
such as for a gradient, and XLA has to write them as they are.

Not for: kernels in nodes that TensorFlow runs (measure.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops.gen_xla_ops import xla_optimization_barrier

from composite.binding.records import PROGRAM, AttrValue
from composite.compiler import account
from composite.measuring import drawing, measure, repeated, rounds, turns
from composite.measuring.decisions import Decision, Point, Times
from composite.ops import call, function_op

_COPIES = 2
_CHAIN = 0.002  # seconds of the faster loop, at least
_MOST_TRIPS = 4096
_MOST_OF_GRADIENT = 0.75  # of the time of the expansion
_MEMORY = 64 << 20  # the most bytes of inputs

Arguments = Callable[[Sequence[Any]], Mapping[str, Any]]


@account.step("measure")
def measured(
    op_name: str,
    arguments: Arguments,
    stamps: Mapping[str, AttrValue],
    specs: Sequence[tf.TensorSpec],
    sizes: measure.Sizes,
) -> Times:
    """Times an installed kernel. Takes the arguments of `measure.measure`; `specs` have no None.

    Raises a tf.errors.OpError if XLA cannot compile the loop.
    """
    copies = measure.copies_of(specs, {}, _COPIES, _MEMORY)
    constants = {i: tf.constant(value, specs[i].dtype) for i, value in sizes.items()}
    with turns.preparing():
        loops = [
            _Loop(op_name, arguments, {**stamps, **measure.route(backend)}, constants, copies)
            for backend in ("tvm", "tf")
        ]
        once = [functools.partial(loop, 1) for loop in loops]
        no_sizes = [None] * len(specs)  # they are constants of the loops
        inputs = drawing.accepted(once, specs, no_sizes, copies, repeated.HOST)
        one = _seconds_of_trip(loops, inputs)
        trips = min(max(math.ceil(_CHAIN / one), 1), _MOST_TRIPS)
    kernel, expansion = ((lambda *xs, loop=loop: loop(trips, *xs)) for loop in loops)
    functions = [kernel, expansion, lambda *xs: loops[0](0, *xs)]
    with turns.measuring():
        found = rounds.settled(
            lambda budget: rounds.taken(functions, inputs, budget), copies * trips
        )
    return rounds.times(found, copies * trips)


def decided(times: Times, asked: int, *, derived: bool = False) -> Decision:
    """The verdict: a kernel has to be clearly faster, or the code stays XLA's own.

    `derived`: the call is that of a gradient, whose expansion has terms in common with that of its
    forward: XLA computes them once.
    """
    most = _MOST_OF_GRADIENT if derived else 1.0
    return Decision(asked, (Point(asked, times, times.ratio < most and not times.close),))


class _Loop:
    """A loop of calls, compiled by XLA; it is called with the number of trips and the inputs."""

    def __init__(
        self,
        op_name: str,
        arguments: Arguments,
        stamps: Mapping[str, AttrValue],
        constants: Mapping[int, Any],
        copies: int,
    ) -> None:
        self._op_name, self._arguments, self._stamps = op_name, arguments, stamps
        self._constants, self._copies = constants, copies
        self._is_region = function_op.is_region(stamps[PROGRAM].s.decode())
        self._compiled = tf.function(self._run, jit_compile=True, autograph=False)

    def __call__(self, trips: int, *inputs: Any) -> None:
        token, *_ = self._compiled(tf.constant(trips), tf.constant(1.0), *inputs)
        token.numpy()

    def _run(self, trips: Any, token: Any, *inputs: Any) -> list[Any]:
        width = len(inputs) // self._copies
        calls = [inputs[copy * width : (copy + 1) * width] for copy in range(self._copies)]

        def trip(i: Any, token: Any, *_: Any) -> list[Any]:
            outputs: list[Any] = []
            for own in calls:
                *made, token = self._after_call(own, token)
                outputs += made
            return [i + 1, token, *outputs]

        # What is carried is computed: XLA drops what nobody reads.
        first = [tf.zeros(y.shape, y.dtype) for y in self._outputs(calls[0])] * self._copies
        shapes = [x.shape for x in (trips, token, *first)]
        state = tf.while_loop(
            lambda i, *_: i < trips, trip, [0, token, *first], shape_invariants=shapes
        )
        return list(state[1:])

    def _after_call(self, inputs: Sequence[Any], token: Any) -> list[Any]:
        """The outputs of a call that begins when there is the token, and a token behind it."""
        held = list(xla_optimization_barrier([*inputs, token]))
        token = held.pop()
        first = next((i for i, x in enumerate(held) if x.dtype.is_floating), None)
        if first is not None:
            held[first] = _scaled(held[first], token)
        outputs = self._call(held)
        read = [i for i, y in enumerate(outputs) if y.dtype.is_floating]
        for i in read[-1:] if self._is_region else read:
            outputs[i] = _scaled(outputs[i], token)
        return list(xla_optimization_barrier([*outputs, token]))

    def _call(self, inputs: Sequence[Any]) -> list[Any]:
        keywords = self._arguments([self._constants.get(i, x) for i, x in enumerate(inputs)])
        return tf.nest.flatten(call.graph_call(self._op_name, keywords, self._stamps, None))

    def _outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a call, in a graph that nobody runs."""
        with tf.Graph().as_default():
            return self._call([tf.compat.v1.placeholder(x.dtype, x.shape) for x in inputs])


def _scaled(x: Any, token: Any) -> Any:
    """An elementwise op, of one multiplication."""
    return x * tf.cast(token, x.dtype)


def _seconds_of_trip(loops: Sequence[_Loop], inputs: Sequence[Any]) -> float:
    """A rough time of a trip of the faster loop."""
    ways = [lambda *xs, loop=loop, n=n: loop(n, *xs) for loop in loops for n in (0, 8)]
    times = [min(rounds.seconds(way, inputs) for _ in range(3)) for way in ways]
    return max(min(times[1] - times[0], times[3] - times[2]) / 8, rounds.LEAST)
