"""`make demo`, run as a user runs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.mark.slow
def test_the_demo_holds_what_it_shows(
    run_python: Any, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    out = tmp_path / "out"
    code = f"import os, runpy\nos.chdir({str(pytestconfig.rootpath)!r})\n"
    code += "runpy.run_module('examples.digits.demo', run_name='__main__')\n"
    printed = run_python(code, "--out", str(out), "--xla", env={"COLUMNS": "200"}).stdout

    accuracy = re.search(r"test accuracy (\d\.\d+)", printed)
    assert accuracy is not None
    assert float(accuracy[1]) >= 0.97
    assert "predictions equal" in printed
    xla = re.search(r"under XLA: .* test accuracy (\d\.\d+), (\d+) nodes compiled", printed)
    assert xla is not None
    assert float(xla[1]) >= 0.97
    assert int(xla[2]) >= 3
    assert "TVM or MLIR loaded: none" in printed
    assert (out / "model" / "saved_model.pb").exists()
    assert (out / "library" / "manifest.json").exists()
    assert np.load(out / "predictions.npy").shape == (450, 10)
    for layer in ("1 x 64 -> 256 RELU", "64 x 256 -> 128 RELU", "64 x 128 -> 10"):
        assert layer in printed
