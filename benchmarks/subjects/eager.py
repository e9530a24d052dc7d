"""What an eager call costs before any work: the op on tiny shapes against one MatMul."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

import composite
from benchmarks.dense_ways import op_layer, operands, plain_layer
from benchmarks.rows import Row, emit
from benchmarks.timing import interleave


def under(backend: str, call: Callable[[], Any]) -> Callable[[], Any]:
    """A hundred calls under a backend: what entering `options` costs is spread thin."""

    def run() -> None:
        with composite.options(backend=backend):
            for _ in range(100):
                call()

    return run


def rows() -> Iterator[Row]:
    """The kernel and the expansion, over `tf.raw_ops.MatMul` of the same operands."""
    x, filter_, bias, *_ = operands((4, 8, 16))
    ways = {
        "MatMul": lambda: tf.raw_ops.MatMul(a=x, b=filter_, transpose_b=True),
        "kernel": lambda: op_layer(x, filter_, bias),
        "expansion": lambda: op_layer(x, filter_, bias),
        "three ops": lambda: plain_layer(x, filter_, bias),
    }
    backends = {"kernel": "tvm", "expansion": "tf"}
    timings = interleave(
        {name: under(backends.get(name, "auto"), call) for name, call in ways.items()},
        seconds=5,
        calls=100,
    )
    for name, at_most in (("kernel", 1.2), ("expansion", 2.0), ("three ops", None)):
        yield Row.of(
            f"eager call 4x8x16: {name} / MatMul",
            timings.ratio(name, "MatMul"),
            "x",
            at_most=at_most,
            detail=f"{timings.microseconds(name).median:.2f} us,"
            f" MatMul {timings.microseconds('MatMul').median:.2f} us",
        )


if __name__ == "__main__":
    emit(rows())
