"""A file of Keras's tests, run without regions and with them, and which outcomes differ."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_MOST_ENDS = 8  # processes of one pass that end before they are through
_AGAIN = 2  # more runs without regions of a file that has tests that differ
_SAID = 300  # characters of what a process printed before it ended


@dataclass
class Counts:
    """What was run, summed over files."""

    tests: int = 0
    regions: int = 0  # nodes
    compiled: int = 0  # kernels
    launches: int = 0
    with_kernels: int = 0  # tests in which kernels ran

    def __add__(self, other: Counts) -> Counts:
        sums = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in _FIELDS}
        return Counts(**sums)

    def __str__(self) -> str:
        return (
            f"{self.tests} tests, {self.regions} regions, {self.compiled} kernels, which ran "
            f"{self.launches} times in {self.with_kernels} tests"
        )


_FIELDS = fields(Counts)


@dataclass(frozen=True)
class Compared:
    """What became of a file; `lines` tell of each test whose outcome differs."""

    counts: Counts
    lines: list[str]


@dataclass
class Outcomes:
    """What became of each test of a file in one way to run it: an outcome and a message each."""

    tests: dict[str, tuple[str, str]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)


def compared(module: str, selected: str, limit: float) -> Compared:
    """Runs a file of tests both ways; `limit`: seconds for each, `selected`: as pytest's -k."""
    with tempfile.TemporaryDirectory(prefix="composite-foreign-") as folder:
        plain = _run(module, selected, limit, Path(folder), regions=False)
        ours = _run(module, selected, limit, Path(folder), regions=True)
        found = differing(plain.tests, ours.tests)
        for _ in range(_AGAIN if found else 0):
            again = _run(module, selected, limit, Path(folder), regions=False).tests
            for test in [one for one in found if again.get(one, ("",))[0] != plain.tests[one][0]]:
                del found[test]  # it fails now and then
    lines = [f"{test}: {plain.tests[test][0]}, with regions {found[test]}" for test in found]
    return Compared(ours.counts, lines)


def differing(
    plain: Mapping[str, tuple[str, str]], ours: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """The tests whose outcome is not what it is without regions, and what it is, with a message.

    A test of the second pass has the name of the first one, behind the pass.
    """
    found = {}
    for name, (outcome, message) in ours.items():
        test = name.partition(" ")[2]
        before = plain.get(test)
        if before is None or before[0] != outcome:
            found[test] = f"{outcome} in pass {name.partition(' ')[0]}: {message}"
    for test in plain:
        if f"1 {test}" not in ours:
            _, ended = ours.get("1 ", ("", ""))  # before the first test
            found[test] = f"not run: {ended}" if ended else "not run"
    return {test: told for test, told in found.items() if test in plain}


def _run(module: str, selected: str, limit: float, folder: Path, *, regions: bool) -> Outcomes:
    """Runs a file, in another process where one ends at a test."""
    found = Outcomes()
    left_out: list[str] = []
    for number in range(_MOST_ENDS):
        cache = folder / f"cache-{regions}"
        cache.mkdir(mode=0o700, exist_ok=True)
        log = folder / f"log-{regions}-{number}"
        asked = {"module": module, "selected": selected, "left_out": left_out, "log": str(log)}
        ended = _process(asked, limit, cache, regions=regions)
        current = _read(log, found)
        if current is None:
            if ended:
                found.tests.setdefault("1 " if regions else "", ("error", ended))
            break
        found.tests[current] = ("ended", ended)
        left_out.append(current.partition(" ")[2] if regions else current)
    return found


def _process(asked: Mapping[str, Any], limit: float, cache: Path, *, regions: bool) -> str:
    """Runs a process; how it ended, if not by itself."""
    own = {
        "COMPOSITE_CACHE_DIR": str(cache),
        "COMPOSITE_REGIONS": "1" if regions else "0",
        "KERAS_BACKEND": "tensorflow",
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "0"),
    }
    command = [sys.executable, "-m", "tests.foreign.child", json.dumps(asked)]
    try:
        done = subprocess.run(
            command,
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end in {limit:g} s"
    if done.returncode == 0:
        return ""
    by = f"signal {signal.Signals(-done.returncode).name}" if done.returncode < 0 else ""
    begin = done.stderr.rfind("Fatal Python error")
    said = done.stderr[begin:][:_SAID] if begin >= 0 else done.stderr[-_SAID:]
    return f"by {by or done.returncode}: {' '.join(said.split())}"


def _read(log: Path, found: Outcomes) -> str | None:
    """Adds what a process wrote; the test that it was at when it ended."""
    current = None
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
        entry = json.loads(line)
        if "begins" in entry:
            current = entry["begins"]
        elif "counts" in entry:
            found.counts += Counts(**entry["counts"])
        else:
            found.tests[entry["test"]] = (entry["outcome"], entry["message"])
            current = None
    return current
