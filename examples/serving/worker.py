"""A `serve` process that runs one version of a model, and the batches that it is given.

A call waits while the process computes another; what has come meanwhile is the next batch. So a
batch costs no waiting of its own, and grows with the load.

Not for: which versions there are (models.py), what clients say (front.py).
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Protocol

import numpy as np

Rows = np.ndarray[Any, np.dtype[np.float32]]


class Runner(Protocol):
    """What computes a batch: float32 [rows, columns] of inputs to [rows, columns] of outputs."""

    def run(self, rows: Rows) -> Rows:
        """The outputs. ChildProcessError when it cannot compute any more."""

    def close(self) -> None:
        """Ends it."""


class Process:
    """A process of serve.c, which holds a model in TensorFlow's C API and its ops' library."""

    def __init__(self, program: Path, library: Path, model: Path, ends: Sequence[str]) -> None:
        """`ends`: the ops of the graph that take the input and give the output."""
        self._process = subprocess.Popen(
            [str(program), str(library), str(model), *ends],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout

    def run(self, rows: Rows) -> Rows:
        """As Runner says; a line of numbers each way, with all digits that a float32 has."""
        try:
            self._to.write(" ".join(f"{x:.9g}" for x in rows.ravel()) + "\n")
            self._to.flush()
            answer = self._from.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise ChildProcessError(f"the model's process ended with {self._process.wait()}")
        return np.array(answer.split(), np.float32).reshape(len(rows), -1)

    def close(self) -> None:
        """Lets it say what it ran, and end."""
        with contextlib.suppress(BrokenPipeError):  # it has ended before it read all
            self._to.close()
        self._process.wait()
        self._from.close()


class _Call(NamedTuple):
    rows: Rows
    answer: Future[Rows]


class Batches:
    """Calls of one runner, by a thread that puts those that wait into one.

    Attributes:
        calls: how many were computed, or failed.
        batches: in how many runs.
        failed: whether a run failed, after which the runner is not to be trusted.
    """

    def __init__(self, runner: Runner, most_rows: int) -> None:
        self.calls = 0
        self.batches = 0
        self.failed = False
        self._runner = runner
        self._most_rows = most_rows
        self._waiting: queue.Queue[_Call | None] = queue.Queue()
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, rows: Rows) -> Future[Rows]:
        """The outputs for some rows, once they are there. Not after `close`."""
        answer: Future[Rows] = Future()
        self._waiting.put(_Call(rows, answer))
        return answer

    def close(self) -> None:
        """Computes what was submitted before, and ends the runner."""
        self._waiting.put(None)
        self._thread.join()
        self._runner.close()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            calls, ending = [first], False
            while sum(len(call.rows) for call in calls) < self._most_rows:
                try:
                    more = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    ending = True
                    break
                calls.append(more)
            self._compute(calls)
            if ending:
                return

    def _compute(self, calls: Sequence[_Call]) -> None:
        self.calls += len(calls)
        self.batches += 1
        try:
            outputs = self._runner.run(np.concatenate([call.rows for call in calls]))
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self.failed = True
            for call in calls:
                call.answer.set_exception(error)
            return
        ends = np.cumsum([len(call.rows) for call in calls])[:-1]
        for call, own in zip(calls, np.split(outputs, ends), strict=True):
            call.answer.set_result(own)
