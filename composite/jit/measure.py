"""Measures a kernel against what TensorFlow would run instead, on the node's own terms.

Both are measured as nodes of a graph: several copies of the op in one function, each with inputs of
its own (a real model does not read the same weights again), one after the other, once told to run
the kernel and once the expansion, which grappler then fuses as it would hand-written ops. The cost
of an empty function of the same signature is taken off, so no Python is in the result. Inputs that
never change are constants of the graph there too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite import call
from composite.records import AttrValue

_COPIES = 16
_MEMORY = 64 << 20  # bytes of inputs, at most
_CONSTANTS = 16 << 20  # bytes of constants, which tracing and grappler copy a few times
_ROUNDS = 60
_FEWEST = 5  # rounds, however long one takes
_BUDGET = 0.15  # seconds of timed runs, roughly
_OPINIONS = 3  # times that a close result is measured, at most


class Times(NamedTuple):
    """Microseconds per node, and the median of the paired ratios."""

    kernel_us: float
    expansion_us: float
    ratio: float  # kernel / expansion

    @property
    def kernel_wins(self) -> bool:
        """Whether the kernel is no slower."""
        return self.ratio <= 1.0


def measure(
    op_name: str,
    arguments: Callable[[Sequence[Any]], Mapping[str, Any]],
    stamps: Mapping[str, AttrValue],
    specs: Sequence[tf.TensorSpec],
    constants: Sequence[int] = (),
) -> Times:
    """Times an installed kernel. `arguments(inputs)` makes the keywords of a call of the op.

    `constants`: the inputs that never change.
    """
    known = {i: _draw(specs[i], np.random.default_rng(i)) for i in constants}
    varying = [spec for i, spec in enumerate(specs) if i not in known]
    copies = _copies(varying, known)
    inputs = _inputs(varying, copies)

    def keywords(own: Sequence[Any], copy: int) -> Mapping[str, Any]:
        given = iter(own)
        every = [
            _constant(known[i], copy) if i in known else next(given) for i in range(len(specs))
        ]
        return arguments(every)

    chains = [
        _chain(op_name, keywords, {**stamps, **_route(backend)}, varying, copies)
        for backend in ("tvm", "tf")
    ]
    functions = [*chains, _empty(varying, copies)]
    for function in functions:
        function(*inputs)
    rounds: list[tuple[float, float, float]] = []
    for _ in range(_OPINIONS):
        rounds += _rounds(functions, inputs)
        ratios = _ratios(rounds)
        below, _, above = statistics.quantiles(ratios, n=4)
        if not below <= 1.0 <= above:
            break  # not close, or not noisy: more rounds would say the same
    base = min(nothing for _, _, nothing in rounds)
    ratio = statistics.median(ratios)
    seconds = statistics.median(expansion for _, expansion, _ in rounds) - base
    # 10 ns: less cannot be told apart. The kernel's time follows, so that times and verdict agree.
    expansion_us = max(seconds * 1e6 / copies, 0.01)
    return Times(ratio * expansion_us, expansion_us, ratio)


def _ratios(rounds: Sequence[tuple[float, float, float]]) -> list[float]:
    base = min(nothing for _, _, nothing in rounds)
    return [max(a - base, 1e-9) / max(b - base, 1e-9) for a, b, _ in rounds]


def _route(backend: str) -> dict[str, AttrValue]:
    return {
        "_composite_backend": AttrValue(s=backend.encode()),
        "_composite_uncounted": AttrValue(b=True),  # composite.stats() is about the user's calls
    }


def _copies(specs: Sequence[tf.TensorSpec], constants: Mapping[int, Any]) -> int:
    size = sum(s.shape.num_elements() * s.dtype.size for s in specs)
    fixed = sum(array.nbytes for array in constants.values())
    return int(max(1, min(_COPIES, _MEMORY // max(size, 1), _CONSTANTS // max(fixed, 1))))


def _constant(array: Any, copy: int) -> Any:
    """A constant of its own for each copy: grappler makes one of equal ones."""
    own = array.copy()
    own.flat[0] = copy
    return tf.constant(own)


def _inputs(specs: Sequence[tf.TensorSpec], copies: int) -> list[Any]:
    random = np.random.default_rng(0)
    drawn = [_draw(spec, random) for spec in specs]
    # The same numbers in memory of their own: to draw them anew takes longer than to measure.
    with tf.device("CPU:0"):
        return [tf.constant(array.copy()) for _ in range(copies) for array in drawn]


def _draw(spec: tf.TensorSpec, random: np.random.Generator) -> Any:
    shape, dtype = spec.shape.as_list(), spec.dtype.as_numpy_dtype
    if spec.dtype.is_floating:
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def _chain(
    op_name: str,
    arguments: Callable[[Sequence[Any], int], Mapping[str, Any]],
    stamps: Mapping[str, AttrValue],
    specs: Sequence[tf.TensorSpec],
    copies: int,
) -> Any:
    width = len(specs)

    def chain(*inputs: Any) -> list[Any]:
        outputs: list[Any] = []
        for i in range(copies):
            with tf.control_dependencies(outputs[-1:]), tf.device("CPU:0"):
                own = inputs[i * width : (i + 1) * width]
                result = call.graph_call(op_name, arguments(own, i), stamps, None)
            # Returned, every one: grappler turns a node that only orders others into nothing.
            outputs += tf.nest.flatten(result)
        return outputs

    return _traced(chain, [*specs] * copies)


def _empty(specs: Sequence[tf.TensorSpec], copies: int) -> Any:
    def empty(*inputs: Any) -> list[Any]:
        return [tf.identity(x) for x in inputs[:: max(len(specs), 1)]]

    return _traced(empty, [*specs] * copies)


def _traced(function: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> Any:
    return tf.function(
        function, input_signature=list(specs), autograph=False
    ).get_concrete_function()


def _rounds(functions: Sequence[Any], inputs: Sequence[Any]) -> list[tuple[float, float, float]]:
    """Seconds of each function, run in turns, so that a busy moment of the machine hits all."""
    rounds = []
    end = time.perf_counter() + _BUDGET
    for number in range(_ROUNDS):
        if number >= _FEWEST and time.perf_counter() > end:
            break
        kernel, expansion, nothing = (_time(function, inputs) for function in functions)
        rounds.append((kernel, expansion, nothing))
    return rounds


def _time(function: Any, inputs: Sequence[Any]) -> float:
    start = time.perf_counter()
    function(*inputs)
    return time.perf_counter() - start
