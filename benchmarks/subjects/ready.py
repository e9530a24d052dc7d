"""How long a user waits: for an import, a kernel, an accelerated model; beside what others take.

Each row is measured in a process of its own, with a cache folder of its own: first an empty one,
then, in a second process, the one that the first has left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.rows import Row, emit
from benchmarks.sides.model_ready import LIBRARIES
from benchmarks.sides.team import PEERS_PYTHON
from benchmarks.timing import KINDS, QUICK
from benchmarks.works.readiness import MARK, OURS, Ready, has_peers

CASES = tuple(OURS)
PATIENCE = 1800.0  # seconds for a row
SECOND = 2.0  # seconds that a second process may take for a model

# Seconds of a first process on two quiet cores, and megabytes.
BOUNDS = {
    "kernel of a small op": 1.0,
    "kernel of the next small op": 0.3,
    "kernels of its gradient": 0.6,
    "accelerate: dense stack": 3.0,
    "accelerate: encoder": 8.0,
    "accelerate: BERT of 12 layers": 15.0,
    "accelerate: MobileNetV2": 15.0,
    "accelerate: ResNet50": 20.0,
    "accelerate: DenseNet121": 30.0,
    "GPT-2 generates": 10.0,
}
MEGABYTES = {"accelerate: DenseNet121": 1500.0}
_QUICK = ("import", "decorate an op", "first call", "kernel of a small op")


class NotReady(Exception):  # noqa: N818 - says what came instead
    """A process ended without a result; the message has its last line."""


def rows() -> Iterator[Row]:
    """The chosen cases, or all; with --quick those that take seconds."""
    for case in CASES:
        if case in KINDS if KINDS else not QUICK or case in _QUICK:
            yield from of_case(case)


def of_case(case: str) -> Iterator[Row]:
    """Ours in a first and a second process, and what the first takes; then others."""
    with tempfile.TemporaryDirectory(prefix="composite-bench-") as cache:
        for process in ("first", "second"):
            what = f"{case}, {process} process"
            try:
                found = measured([sys.executable, "-m", _WORKS, "ours", case], cache)
            except NotReady as reason:
                yield Row(what, 0, "", detail=str(reason))
                return
            limit = BOUNDS.get(case) if process == "first" else SECOND if case in BOUNDS else None
            yield Row(what, found.seconds, "s", at_most=limit, detail=found.detail)
            if process == "first":
                most = MEGABYTES.get(case)
                yield Row(f"{case}, peak of memory", found.megabytes, "MB", at_most=most)
                if found.processor:
                    yield Row(f"{case}, time of processors", found.processor, "s")
    if has_peers(case):
        yield from of_others(case)


def of_others(case: str) -> Iterator[Row]:
    """What XLA takes to compile the same, and other libraries, where they are installed."""
    with tempfile.TemporaryDirectory(prefix="composite-bench-") as folder:
        yield _row(f"{case}, XLA", [sys.executable, "-m", _WORKS, "XLA", case], folder)
        if not case.startswith(_MODEL) or not PEERS_PYTHON.exists():
            return
        try:
            measured([sys.executable, "-m", _WORKS, "files", case, folder], folder)
        except NotReady as reason:
            yield Row(f"{case}, others", 0, "", detail=str(reason))
            return
        for library in LIBRARIES:
            command = [str(PEERS_PYTHON), "-m", "benchmarks.sides.model_ready"]
            name = case.removeprefix(_MODEL)
            yield _row(f"{case}, {library}", [*command, library, name, folder], folder)


_WORKS = "benchmarks.works.readiness"
_MODEL = "accelerate: "


def _row(what: str, command: Sequence[str], cache: str) -> Row:
    try:
        return Row(what, measured(command, cache).seconds, "s")
    except NotReady as reason:
        return Row(what, 0, "", detail=str(reason))


def measured(command: Sequence[str], cache: str) -> Ready:
    """What a process finds, whose kernel cache is in a folder."""
    environment = os.environ | {"COMPOSITE_CACHE_DIR": str(Path(cache, "kernels"))}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotReady(f"it was not ready in {PATIENCE:.0f} s") from None
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return Ready(**json.loads(line.removeprefix(MARK)))
    raise NotReady((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])


if __name__ == "__main__":
    emit(rows())
