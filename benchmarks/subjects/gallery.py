"""The ops of examples/gallery beside the TensorFlow ops of their bodies, with and without XLA.

A function has several calls of an op. Ours is traced before any kernel is there, as a training
step is, and once more when all are; and called eagerly. Of each, the values alone are timed, and
with them the gradients of all inputs.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.dense_ways import graph
from benchmarks.rows import Row, emit
from benchmarks.timing import KINDS, QUICK, Timings, interleave
from benchmarks.warm import warm
from benchmarks.works.gallery import CALLS, GALLERY, GalleryWork
from composite.ops.op import CompositeOp

FIRST, LATER, EAGER = "traced first", "traced later", "eager"
PLAIN, XLA = "TensorFlow", "XLA"
FORWARD, BOTH = "forward", "forward and backward"
DTYPES = {"f32": tf.float32, "bf16": tf.bfloat16}
# The least geometric mean of the best of TensorFlow over ours.
MEANS = {FORWARD: 1.3, BOTH: 1.1}

Way = Callable[[], Any]


def rows() -> Iterator[Row]:
    """TensorFlow and XLA over ours, for each op, and the means over all ops."""
    chosen = {name: work for name, work in GALLERY.items() if not KINDS or name in KINDS}
    best: dict[str, list[float]] = {FORWARD: [], BOTH: []}
    for name, work in itertools.islice(chosen.items(), 2 if QUICK and not KINDS else None):
        for label, dtype in DTYPES.items():
            for what, timings in time_op(work, dtype).items():
                yield from _rows(f"{name}, {label}, {what}", timings)
                others = [way for way in (PLAIN, XLA) if way in timings.seconds]
                best[what].append(timings.ratio(timings.fastest(others), FIRST).median)
    for what, ratios in best.items():
        if ratios:
            mean = float(np.exp(np.mean(np.log(ratios))))
            title = f"gallery, {what}: best of TensorFlow and XLA / ours {FIRST}, geometric mean"
            yield Row(title, mean, "x", at_least=MEANS[what], detail=f"{len(ratios)} ratios")


def _rows(name: str, timings: Timings) -> Iterator[Row]:
    times = ", ".join(f"{w} {timings.microseconds(w).median:.4g}" for w in timings.seconds)
    pairs: list[tuple[str, str, float | None]]
    pairs = [(PLAIN, way, 0.97) for way in (FIRST, LATER, EAGER)]
    pairs += [(XLA, FIRST, None)] if XLA in timings.seconds else []
    for other, way, at_least in pairs:
        yield Row.of(
            f"{name}: {other} / ours {way}",
            timings.ratio(other, way),
            "x",
            at_least=at_least,
            detail=f"us: {times}",
        )


def time_op(work: GalleryWork, dtype: tf.DType, seconds: float = 3.0) -> dict[str, Timings]:
    """All ways of the values, and of values and gradients."""
    firsts, others = work.inputs()
    args = [_tensors(x, dtype) for x in (*firsts, *others)]
    op = work.op()
    plain = _calls(by_hand(op), work, len(firsts), work.attrs)
    ours = _calls(op, work, len(firsts), work.attrs)
    seeds = [
        tf.random.stateless_normal(y.shape, [0, 1], dtype=y.dtype) for y in _floats(plain(*args))
    ]

    def both(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: _with_gradients(function, args, seeds)

    kinds = {FORWARD: lambda function: function, BOTH: both}
    ways: dict[str, dict[str, Way]] = {
        what: {FIRST: graph(of(ours), tuple(args)), PLAIN: graph(of(plain), tuple(args))}
        for what, of in kinds.items()
    }
    for what, of in kinds.items():
        ways[what][EAGER] = functools.partial(of(ours), *args)
        ways[what] |= _compiled(of(plain), args)
    for what in kinds:
        warm(ways[what])
    for what, of in kinds.items():
        ways[what] |= warm({LATER: graph(of(ours), tuple(args))})
    return {what: interleave(ways[what], seconds=seconds, calls=CALLS) for what in kinds}


def _compiled(function: Callable[..., Any], args: list[Any]) -> dict[str, Way]:
    """The function under XLA; nothing where XLA does not compile it."""
    try:
        way = graph(function, tuple(args), jit_compile=True)
        way()
    except tf.errors.OpError:
        return {}
    return {XLA: way}


def _calls(
    function: Callable[..., Any], work: GalleryWork, firsts: int, attrs: dict[str, Any]
) -> Callable[..., list[Any]]:
    """A function of all inputs with `CALLS` calls; gives the outputs of the last, or of all."""

    def run(*args: Any) -> list[Any]:
        heads, rest = list(args[:firsts]), args[firsts:]
        if not work.chains:
            return [y for head in heads for y in tf.nest.flatten(function(head, *rest, **attrs))]
        for _ in range(CALLS):
            outputs = tf.nest.flatten(function(*heads, *rest, **attrs))
            heads = [outputs[i] for i in work.chains]
        return outputs

    return run


def _with_gradients(function: Callable[..., Any], args: Any, seeds: list[Any]) -> Any:
    floats = [x for x in args if not isinstance(x, list) and x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        ys = function(*args)
    return ys, tape.gradient(_floats(ys), floats, seeds)


def _floats(outputs: list[Any]) -> list[Any]:
    return [y for y in outputs if y.dtype.is_floating]


def _tensors(x: Any, dtype: tf.DType) -> Any:
    if isinstance(x, list):
        return [_tensors(one, dtype) for one in x]
    return tf.constant(x, dtype if x.dtype == np.float64 else None)


def by_hand(op: Any) -> Callable[..., Any]:
    """The body of an op as a function of TensorFlow's ops alone, with the bodies that it calls.

    Calls of composites in a body would be nodes, with kernels of their own.
    """
    body = inspect.unwrap(op.python_function)
    called = {
        name: by_hand(value)
        for name, value in body.__globals__.items()
        if name in body.__code__.co_names and isinstance(value, CompositeOp) and value is not op
    }
    function = types.FunctionType(
        body.__code__, body.__globals__ | called, body.__name__, None, body.__closure__
    )
    defaults = {attr.name: attr.default for attr in op.schema.attrs if attr.has_default}
    return functools.partial(function, **defaults)


if __name__ == "__main__":
    emit(rows())
