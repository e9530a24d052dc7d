"""Check and time the kernels of a bundle on a GPU."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu import bundle, numbers
from benchmarks.gpu.bundle import Call, Kernel
from benchmarks.gpu.driver import Driver
from benchmarks.gpu.timing import best
from benchmarks.gpu.torch_peer import TorchPeer
from benchmarks.gpu.works import GpuWork


@dataclass(frozen=True)
class Outcome:
    """What became of a work.

    Attributes:
        work: Its name.
        strategy: What wrote its kernel; empty without one.
        error: The largest error of all calls, of 1 and of the exact value; its bound beside it.
        bound: The largest that is allowed.
        wrong: What is wrong, or why there is no kernel; empty if all is well.
        seconds: Of the timed call; 0 if it was not timed.
        peer: The same of PyTorch, compiled by it or not, whichever is faster; 0 without it.
        bytes: Of the inputs and outputs of the timed call.
        flops: Its operations, where they bind it.
    """

    work: str
    strategy: str
    error: float = 0.0
    bound: float = 0.0
    wrong: str = ""
    seconds: float = 0.0
    peer: float = 0.0
    bytes: float = 0.0
    flops: float = 0.0


def outcomes(
    works: Sequence[GpuWork],
    folder: Path,
    driver: Driver,
    *,
    timed: bool = True,
    peer: TorchPeer | None = None,
) -> Iterator[Outcome]:
    """Check each work that a bundle has, and time it.

    If nothing is to be timed, the sizes for that are left out where there are others.
    """
    by_name = {work.name: work for work in works}
    kernels, _ = bundle.load(folder, driver.level)
    for kernel in kernels:
        if kernel.missing:
            yield Outcome(kernel.work, "", wrong=f"no kernel: {kernel.missing}")
            continue
        yield _Run(by_name[kernel.work], kernel, folder, driver).outcome(timed=timed, peer=peer)


class _Run:
    def __init__(self, work: GpuWork, kernel: Kernel, folder: Path, driver: Driver) -> None:
        self._work = work
        self._kernel = kernel
        self._folder = folder
        self._driver = driver
        self._code = bundle.code_of(folder, kernel.key, driver.level)

    def outcome(self, *, timed: bool, peer: TorchPeer | None) -> Outcome:
        error, wrong = 0.0, ""
        seconds = theirs = size = 0.0
        for number, call in enumerate(self._kernel.calls):
            if call.timed and not timed and len(self._kernel.calls) > 1:
                continue
            inputs = self._inputs(call)
            memory = self._driver.place(call, inputs)
            self._launch(call, memory)
            own = self._error(call, number, memory)
            error = max(error, own)
            if not own <= self._work.tolerance and not wrong:
                wrong = f"an error of {own:.2g} at {call.sizes or 'its only sizes'}"
            if call.timed and timed and not wrong:
                seconds = best(self._driver, partial(self._launch, call, memory))
                size = float(sum(x.nbytes for x in inputs) + _out_bytes(call))
                theirs = peer.seconds(self._work, inputs) if peer is not None else 0.0
        flops = float(self._work.flops(self._work.timed)) if seconds else 0.0
        return Outcome(
            self._work.name, self._kernel.strategy, error, self._work.tolerance, wrong, seconds,
            theirs, size, flops,
        )  # fmt: skip

    def _inputs(self, call: Call) -> list[Any]:
        drawn = self._work.inputs(call.sizes)
        inputs = [numbers.stored(x, self._work.dtype) for x in drawn]
        checksum = 0
        for array in inputs:
            checksum = zlib.crc32(array.tobytes(), checksum)
        if checksum != call.checksum:
            raise RuntimeError(
                f"{self._work.name}: NumPy here draws other inputs than where the bundle was made; "
                "make it here, or install that NumPy"
            )
        return inputs

    def _launch(self, call: Call, memory: Any) -> None:
        for step in call.steps:
            self._driver.launch(self._code, step, memory)

    def _error(self, call: Call, number: int, memory: Any) -> float:
        worst = 0.0
        exact = bundle.load_exact(self._folder, self._kernel.key, number)
        for i, ((shape, dtype), (places, values)) in enumerate(
            zip(call.outputs, exact, strict=True)
        ):
            found = self._driver.download(memory[f"out{i}"], shape, dtype).reshape(-1)[places]
            rounded = numbers.stored(values, dtype)  # what overflows a dtype is infinite in it
            with np.errstate(invalid="ignore"):
                overflows = np.isinf(numbers.widened(rounded, dtype)) & np.isfinite(values)
            exact_here = np.where(overflows, numbers.widened(rounded, dtype), values)
            worst = max(worst, numbers.worst(numbers.widened(found, dtype), exact_here))
        return worst


def _out_bytes(call: Call) -> int:
    return sum(
        math.prod(shape) * np.dtype(numbers.memory_dtype(dtype)).itemsize
        for shape, dtype in call.outputs
    )
