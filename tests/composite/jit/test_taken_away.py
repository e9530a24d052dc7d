"""A training goes on, whatever is taken away from it; see `taken_away`, which tries it longer."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT, Mounts, environment

ROUNDS = 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folders", "mounts"])
def test_a_training_goes_on(tmp_path: Path, mounted: Mounts, kind: str) -> None:
    for name in ("cache", "tmp"):
        if kind == "mounts":
            mounted(tmp_path / name, "mode=700,size=8m")
        else:
            (tmp_path / name).mkdir(mode=0o700)
    seed = time.time_ns() % 1_000_000
    variables = {"TMPDIR": str(tmp_path / "tmp"), "COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "tests.composite.jit.taken_away", str(ROUNDS), str(seed)]
    done = subprocess.run(
        [*command, str(tmp_path)],
        cwd=ROOT,
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}\n{done.stderr}"
