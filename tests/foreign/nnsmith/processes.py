"""Runs models in a process of its own, and in another one those behind a model that ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.foreign.nnsmith.counts import Counts

_LONGEST = 600.0  # seconds of a model
_SAID = 500  # characters of what a process printed before it ended


def run_all(lines: Sequence[str]) -> tuple[Counts, list[str]]:
    """Runs models, a line each; what was counted, and what differs."""
    counts, found = Counts(), []
    left = list(lines)
    while left:
        with tempfile.TemporaryDirectory(prefix="composite-nnsmith-") as name:
            folder = Path(name)
            ended = _process(left, folder)
            entries = _read(folder / "log")
        for entry in entries:
            counts += Counts(**entry["counts"])
            if entry["told"]:
                found.append(f"seed {entry['seed']}: {entry['told']}")
        left = left[len(entries) :]
        if left:
            seed = json.loads(left.pop(0))["seed"]
            found.append(f"seed {seed}: its process ended {ended}")
            counts.models += 1
    return counts, found


def _process(lines: Sequence[str], folder: Path) -> str:
    """Runs a process; how it ended."""
    (folder / "models").write_text("\n".join(lines), "utf-8")
    (folder / "cache").mkdir(mode=0o700)
    own = {
        "COMPOSITE_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "0",
    }
    command = [sys.executable, "-m", "tests.foreign.nnsmith.child"]
    try:
        done = subprocess.run(
            [*command, str(folder / "models"), str(folder / "log")],
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST * len(lines),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "by no means in time"
    by = signal.Signals(-done.returncode).name if done.returncode < 0 else str(done.returncode)
    return f"with {by}: {' '.join(done.stderr[-_SAID:].split())}"


def _read(log: Path) -> list[dict[str, Any]]:
    """What became of each model that was run."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines]
