"""How long the dense kernel takes to compile in the background, with an empty cache."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator

import composite
from benchmarks.dense_ways import operands
from benchmarks.rows import Row, emit
from examples.digits.ops import fused_fully_connected


def rows() -> Iterator[Row]:
    """Seconds from the first call to the kernel's verdict: the worker's first, then its next."""
    x, filter_, bias, *_ = operands((32, 1024, 1024))
    for which, act in (("first in a process", "TANH"), ("next", "RELU")):
        start = time.perf_counter()
        fused_fully_connected(x, filter_, bias, act=act)
        called = time.perf_counter()
        composite.wait()
        seconds = time.perf_counter() - start
        verdict = composite.explain(fused_fully_connected, x, filter_, bias, act=act)
        yield Row(
            f"background compile of dense 32x1024x1024, {which}",
            seconds,
            "s",
            at_most=None if which.startswith("first") else 1.0,
            detail=f"the call itself {(called - start) * 1e3:.1f} ms; then: {verdict.path}",
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        os.environ["COMPOSITE_CACHE_DIR"] = empty
        emit(rows())
