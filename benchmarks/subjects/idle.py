"""A launch after an idle gap, when the workers sleep, against the kernel on one thread.

Two processes: TensorFlow fixes the size of its pool once in each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK, Spread

GAPS_MS = (0.0, 1.0, 20.0)
SHAPE = (32, 256, 256)
LAUNCHES = 40 if QUICK else 150


def launches(gap_ms: float) -> list[float]:
    """Seconds of single eager launches, each after a gap."""
    import composite
    from benchmarks.dense_ways import op_layer, operands

    x, filter_, bias, *_ = operands(SHAPE)
    times = []
    with composite.options(backend="tvm"):
        for _ in range(20):
            op_layer(x, filter_, bias)
        for _ in range(LAUNCHES):
            time.sleep(gap_ms / 1e3)
            start = time.perf_counter()
            op_layer(x, filter_, bias)
            times.append(time.perf_counter() - start)
    return times


def in_process(threads: int) -> list[list[float]]:
    """`launches` of every gap in a fresh process whose intra-op pool has this many threads."""
    environment = {**os.environ, "TF_NUM_INTRAOP_THREADS": str(threads)}
    command = [sys.executable, "-m", "benchmarks.subjects.idle", "--worker"]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    times: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return times


def rows() -> Iterator[Row]:
    """All threads over one thread, a row for each gap."""
    threads = os.cpu_count() or 1
    rounds = [(in_process(threads), in_process(1)) for _ in range(3)]
    for i, gap in enumerate(GAPS_MS):
        several, one = (np.concatenate([pair[k][i] for pair in rounds]) for k in (0, 1))
        ratios = np.array(
            [np.median(pair[0][i]) / np.median(pair[1][i]) for pair in rounds], dtype=np.float64
        )
        yield Row.of(
            f"launch after {gap:g} ms idle: {threads} threads / 1 thread",
            Spread.of(ratios),
            "x",
            at_most=1.0,
            detail=f"{np.median(several) * 1e6:.0f} us against {np.median(one) * 1e6:.0f} us",
        )


if __name__ == "__main__":
    if "--worker" in sys.argv:
        print(json.dumps([launches(gap) for gap in GAPS_MS]))
    else:
        emit(rows())
