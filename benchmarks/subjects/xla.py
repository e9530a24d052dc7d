"""Composites under XLA beside the ops of their bodies, written by hand: run time, compile time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from benchmarks.dense_ways import Layer, Shape, op_layer, operands, plain_layer, stack
from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK, Spread, Timings, interleave

OURS, BY_HAND = "composites", "by hand"
LAYERS: dict[str, Layer] = {OURS: op_layer, BY_HAND: plain_layer}

# shape (m, k, n) and depth of the stack
SHAPES: list[tuple[Shape, int]] = [((32, 256, 256), 8), ((4, 16, 8), 32)]
ROUNDS = 3 if QUICK else 12


def forward(layer: Layer, depth: int) -> Callable[..., Any]:
    """A stack of dense layers."""
    return stack(layer, "RELU", depth)


def backward(layer: Layer, depth: int) -> Callable[..., Any]:
    """The gradients of a stack with respect to all that it takes."""
    run = stack(layer, "RELU", depth)

    def gradients(*args: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(args)
            loss = tf.reduce_sum(run(*args))
        return tape.gradient(loss, args)

    return gradients


def rows() -> Iterator[Row]:
    """Ours over by hand, for each stack, alone and with its gradients."""
    for shape, depth in SHAPES[: 1 if QUICK else None]:
        args = operands(shape)
        for what in (forward, backward):
            name = f"XLA, {what.__name__}, {depth} layers of {'x'.join(map(str, shape))}"
            made = {way: what(layer, depth) for way, layer in LAYERS.items()}
            yield _row(f"{name}: to run", _run_times(made, args), 1.03)
            yield _row(f"{name}: to trace and compile", _compile_times(made, args), 1.2)


def _run_times(made: dict[str, Callable[..., Any]], args: Any) -> Timings:
    ways = {}
    for way, function in made.items():
        concrete = _jit(function).get_concrete_function(*args)
        ways[way] = lambda concrete=concrete: concrete(*args)
    return interleave(ways, seconds=6)


def _compile_times(made: dict[str, Callable[..., Any]], args: Any) -> Timings:
    """Seconds from a new tf.function to its first result."""
    seconds: dict[str, list[float]] = {way: [] for way in made}
    for turn in range(ROUNDS + 1):
        for way in sorted(made, reverse=bool(turn % 2)):
            gc.collect()
            start = time.perf_counter()
            _jit(made[way])(*args)
            seconds[way].append(time.perf_counter() - start)
    # The first is left out: it derives the gradient of the op, once for a process.
    return Timings({way: np.array(values[1:]) for way, values in seconds.items()})


def _jit(function: Callable[..., Any]) -> Any:
    return tf.function(function, jit_compile=True, autograph=False)


def _row(name: str, timings: Timings, at_most: float) -> Row:
    times = ", ".join(
        f"{way} {Spread.of(values * 1e3).median:.4g}" for way, values in timings.seconds.items()
    )
    return Row.of(
        f"{name}, {OURS} / {BY_HAND}",
        timings.ratio(OURS, BY_HAND),
        "x",
        at_most=at_most,
        detail=f"ms: {times}",
    )


if __name__ == "__main__":
    with composite.options(backend="tf"):
        emit(rows())
