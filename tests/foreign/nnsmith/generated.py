"""The environment with NNSmith, and the models that it generates there."""

from __future__ import annotations

import os
import subprocess

from tests.conftest import ROOT

_ENVIRONMENT = ROOT / ".venv-nnsmith"
_PYTHON = _ENVIRONMENT / "bin" / "python"
is_there = (_ENVIRONMENT / "installed.stamp").exists() and (_ENVIRONMENT / "cache").is_dir()
MISSING = "NNSmith is not there: make .venv-nnsmith/installed.stamp"
_MODULE = "tests.foreign.nnsmith.generate"


def generated(first: int, count: int) -> list[str]:
    """The models of so many seeds, as lines. RuntimeError where they are not generated."""
    if not is_there:
        raise RuntimeError(MISSING)
    own = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = subprocess.run(
        [str(_PYTHON), "-m", _MODULE, str(first), str(count)],
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"seeds from {first}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()
