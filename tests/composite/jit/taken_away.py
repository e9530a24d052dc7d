"""A training whose compiler, memory, cache and temporary folder are taken away at random moments.

    python -m tests.composite.jit.taken_away ROUNDS SEED FOLDER

Each round trains a step whose kernels are new, has one event at a random moment while they are
made, and compares the gradients with those of plain TensorFlow. The rounds take turns at what is
taken away. Memory is taken from the compiler's process, and from whoever would start that. FOLDER
has two folders, `cache` and `tmp`, which COMPOSITE_CACHE_DIR and TMPDIR name; where each is a small
file system of its own, they become full and read-only too. The exit status is 0 if all numbers are
right and no event has cost more than a line of log.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

import composite
from composite import Composite
from composite.compiler_process import client
from composite.measuring import decisions
from composite.measuring.decisions import Decision, Point, Times

_LIMIT = 10.0  # seconds of a task: one that is stopped is waited for so long


@Composite(
    "TakenAwayLayer",
    inputs=["x: float", "w: float"],
    attrs=["slope: float"],
    outputs=["y: float"],
)
def layer(x, w, slope):
    """A dense layer; each slope is another kernel."""
    y = tf.matmul(x, w)
    return tf.where(y > 0.0, y, y * slope)


class Events:
    """What can be taken away, and is given back after the round.

    `known` has by what is taken away how that happens.
    """

    def __init__(self, folder: Path, chance: random.Random, lines: Callable[[], int]) -> None:
        self._chance, self._lines = chance, lines
        self._cache, self._tmp = folder / "cache", folder / "tmp"
        self._patches = contextlib.ExitStack()
        self.known: dict[str, list[Callable[[], None]]] = {
            "compiler": [self.kill, self.kill, self.stop],
            "memory": [self.starve, self.starve, self.starve_start],
            "cache": [self.remove_cache],
            "tmp": [self.remove_tmp],
        }
        if os.path.ismount(self._cache):
            self.known["cache"] += [self.fill_cache, self.lock_cache, self.forbid_running]
            self.known["tmp"] += [self.fill_tmp]

    def _signal(self, number: int) -> None:
        if (process := client._client.number) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)

    def starve(self) -> None:
        """Let the compiler and the linker that it starts have no more memory, until they say so."""
        if (number := client._client.number) is None:
            return
        with contextlib.suppress(OSError):  # it has just ended
            _, most = resource.prlimit(number, resource.RLIMIT_AS)
            little = self._chance.randrange(1 << 20, 1 << 26)
            resource.prlimit(number, resource.RLIMIT_AS, (little, most))
            told, end = self._lines(), time.monotonic() + 2.0
            while self._lines() == told and time.monotonic() < end:
                time.sleep(0.01)
            resource.prlimit(number, resource.RLIMIT_AS, (most, most))

    def starve_start(self) -> None:
        """End the compiler, and have no memory to start the next one, unless that cost a task."""
        start, told = subprocess.Popen, self._lines()

        def refused(command: Sequence[str], **options: Any) -> Any:
            if command[0] != sys.executable:
                return start(command, **options)
            self._patches.close()
            end = time.monotonic() + 1.0  # the task that the end has cost is told by its thread
            while self._lines() == told and time.monotonic() < end:
                time.sleep(0.01)
            if self._lines() > told:
                return start(command, **options)
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

        self._patches.enter_context(mock.patch.object(subprocess, "Popen", refused))
        client._client._template = None  # from which it would be forked
        self.kill()

    def remove_cache(self) -> None:
        _empty(self._cache)

    def remove_tmp(self) -> None:
        if os.path.ismount(self._tmp):
            _empty(self._tmp)
        else:
            shutil.rmtree(self._tmp, ignore_errors=True)

    def fill_tmp(self) -> None:
        _fill(self._tmp)

    def fill_cache(self) -> None:
        _fill(self._cache)

    def lock_cache(self) -> None:
        _remount(self._cache, "ro")

    def forbid_running(self) -> None:
        _remount(self._cache, "noexec")

    def give_back(self) -> None:
        self._patches.close()
        if os.path.ismount(self._cache):
            _remount(self._cache, "rw,exec")
        for folder in (self._cache, self._tmp):
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / "ballast").unlink(missing_ok=True)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _fill(folder: Path) -> None:
    with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * (1 << 16))


def _remount(folder: Path, options: str) -> None:
    """Mount it with other options, as soon as no file in it is open for writing."""
    # Of the mount alone: no file system becomes read-only while removed files of it are open.
    command = ["mount", "-o", f"remount,bind,{options}", str(folder)]
    end = time.monotonic() + _LIMIT
    while subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode:
        assert time.monotonic() < end, " ".join(command)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _gradients(
    op: Callable[..., tf.Tensor], w: tf.Variable, x: tf.Tensor, slope: float
) -> np.ndarray:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(op(x, w, slope=slope) ** 2)
    return np.asarray(tape.gradient(loss, w))


def _step(w: tf.Variable, numbers: np.random.Generator, slope: float) -> float:
    """One step of the training; how far its gradients are from TensorFlow's."""
    x = tf.constant(numbers.standard_normal((64, 32)).astype(np.float32))
    found = _gradients(layer, w, x, slope)
    expected = _gradients(layer.python_function, w, x, slope)
    assert np.isfinite(expected).all(), "the training diverges: nothing is compared"
    w.assign_sub(0.01 * found)
    time.sleep(0.03)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _kernels_win() -> None:
    """Let each kernel serve, whatever is measured: it is their numbers that are compared."""

    def decide(
        measured: Mapping[int, Times], asked: int, before: Decision | None = None
    ) -> Decision:
        del before
        return Decision(asked, (Point(asked, measured[asked], True),))

    decisions.decide = decide


def _later(seconds: float, event: Callable[[], None]) -> None:
    time.sleep(seconds)
    event()


def main(rounds: int, seed: int, folder: Path) -> int:
    """Run; returns the exit status."""
    for variable, own in (("COMPOSITE_CACHE_DIR", "cache"), ("TMPDIR", "tmp")):
        if os.environ.get(variable) != str(folder / own):
            sys.exit(f"{variable} must be {folder / own}: what is taken away is not used otherwise")
    chance = random.Random(seed)
    numbers = np.random.default_rng(seed)
    lines, counts = _Lines(), Counter[str]()
    events = Events(folder, chance, lambda: len(lines.lines))
    logging.getLogger("composite").addHandler(lines)
    client._client._limit, client._client._pause = _LIMIT, 1.0
    _kernels_win()
    w = tf.Variable(numbers.standard_normal((32, 32)).astype(np.float32))
    thread = ThreadPoolExecutor(1)
    kinds = itertools.cycle(events.known.items())
    worst, told, span = np.float64(0.0), 0, 1.5
    for number, (kind, ways) in enumerate(itertools.islice(kinds, rounds)):
        event = chance.choice(ways)
        taking = thread.submit(_later, chance.uniform(0, span), event)
        slope = (number + 1) / (rounds + 1)
        begin = time.monotonic()
        made = False
        while not made:
            worst = np.maximum(worst, _step(w, numbers, slope))
            made = taking.done() and composite.wait(0)
            # A template that is stopped costs a request the limit twice.
            assert time.monotonic() < begin + 2 * _LIMIT + 30, f"round {number}, {event.__name__}"
        taking.result()
        took = time.monotonic() - begin
        for _ in range(5):  # by the kernels, if it was not these that the event cost
            worst = np.maximum(worst, _step(w, numbers, slope))
        events.give_back()
        counts.update((kind, event.__name__))
        new = lines.lines[told:]
        told = len(lines.lines)
        if not new:
            span = took
        if len(new) > 1:
            print(f"round {number}, {event.__name__}:", *new, sep="\n  ")
            counts["rounds with more than a line"] += 1
    print(f"seed {seed}: {rounds} rounds, off by {worst:.1e} at most, {told} lines: {dict(counts)}")
    stats = composite.stats()
    print(f"{stats['answered']} kernels were made, and called {stats['kernel_launches']} times")
    return int(not worst <= 1e-5 or counts["rounds with more than a line"] > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
