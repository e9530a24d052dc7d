"""What the machine can do at most: operations, and bytes from each level of its memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.roofline.ceilings import MEMORY
from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK, Spread

# Read when TVM is imported: all cores, not half of them, and no worker pinned to one.
os.environ |= {"TVM_NUM_THREADS": str(len(os.sched_getaffinity(0))), "TVM_BIND_THREADS": "0"}

import tvm

from benchmarks.roofline import probes
from composite.compiler import tvm as backend

_CORES = len(os.sched_getaffinity(0))
_SECONDS = 0.1 if QUICK else 0.6  # of each figure
_CALL_SECONDS = 1e-3
_FEWEST = 5  # calls
_OUT_OF_CACHE = 256 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_USUAL = [("L1", 32 << 10, 1), ("L2", 512 << 10, 1), ("L3", 32 << 20, _CORES)]


def rows() -> Iterator[Row]:
    """The peak, then the bandwidths, each on one thread and on all."""
    target = backend.Target.host()
    threads = sorted({1, _CORES})
    for count in threads:
        yield _peak(target, count)
    for name, capacity in [*caches(), (MEMORY, None)]:
        for count in threads:
            yield from _bandwidths(target, count, name, capacity)


def caches() -> list[tuple[str, int]]:
    """Data caches by name, with the bytes that they hold for all our cores together."""
    found = []
    for folder in sorted(_CACHES.glob("index*")):
        kind, level = (folder / "type").read_text().strip(), (folder / "level").read_text().strip()
        size = (folder / "size").read_text().strip()
        shared = len(_numbers((folder / "shared_cpu_list").read_text()) & os.sched_getaffinity(0))
        if kind != "Instruction" and size.endswith("K"):
            found.append((f"L{level}", int(size[:-1]) << 10, max(1, shared)))
    return [(name, size * _CORES // shared) for name, size, shared in found or _USUAL]


def _numbers(text: str) -> set[int]:
    """The numbers of a list such as "0-3,8"."""
    ranges = (part.partition("-") for part in text.strip().split(","))
    return {n for first, _, last in ranges for n in range(int(first), int(last or first) + 1)}


def _peak(target: backend.Target, threads: int) -> Row:
    floats = probes.operands(target, threads)
    repeats = int(_CALL_SECONDS * 50e9 / (2 * floats / threads))
    probe = probes.multiply_add(target, threads, repeats)
    values = tvm.runtime.tensor(np.full(floats, 0.5, np.float32))
    rates = 2 * floats * repeats / _times(partial(probe, values))
    return _row("FMA peak", rates, "FLOP", threads, {"flops": float(rates.max())})


def _bandwidths(
    target: backend.Target, threads: int, name: str, capacity: int | None
) -> Iterator[Row]:
    """Reading and copying what fills half of a cache, or no cache holds."""
    wanted = _OUT_OF_CACHE if capacity is None else capacity // 2 * threads // _CORES
    for kind, arrays in (("read", 1), ("copy", 2)):
        floats = probes.whole(target, threads, wanted // arrays // 4)
        moved = floats * 4 * arrays
        repeats = max(1, int(_CALL_SECONDS * 50e9 / moved))
        make = probes.copy if kind == "copy" else probes.read
        probe = make(target, threads, floats, repeats)
        source = tvm.runtime.tensor(np.ones(floats, np.float32))
        length = floats if kind == "copy" else probes.sums(target, threads)
        out = tvm.runtime.tensor(np.zeros(length, np.float32))
        rates = moved * repeats / _times(partial(probe, source, out))
        data: dict[str, object] = {"probe": kind, "footprint": moved}
        if kind == "read":
            data |= {"level": name, "capacity": capacity, "bandwidth": float(rates.max())}
        yield _row(f"{name}, {kind} {moved >> 10} KB", rates, "B", threads, data)


def _times(run: Callable[[], object]) -> npt.NDArray[np.float64]:
    """Seconds of each of many calls."""
    run()
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < _FEWEST or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return np.array(times)


def _row(
    what: str, rates: npt.NDArray[np.float64], unit: str, threads: int, data: dict[str, object]
) -> Row:
    """The best of the calls: a limit is what was reached once; the spread is that of all."""
    spread = Spread.of(rates / 1e9)
    return Row(
        f"{what}, {threads} thread{'s' if threads > 1 else ''}",
        float(rates.max()) / 1e9,
        f"G{unit}/s",
        spread.low,
        spread.high,
        detail=f"the best of {len(rates)} calls, median {spread.median:.4g}",
        data={**data, "threads": threads, "all_threads": threads == _CORES},
    )


if __name__ == "__main__":
    emit(rows())
