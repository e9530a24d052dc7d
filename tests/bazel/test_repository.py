"""`bazel test //...` in this repository, with real Bazel."""

from __future__ import annotations

import filecmp
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from composite.aot import build_options, building
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

LIBRARY = ROOT / "examples" / "bazel"


@pytest.fixture(scope="module")
def tested(bazel: Any) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The run of all tests, and the folder of what it built for examples/bazel."""
    done = bazel(ROOT, "test", "//...")
    where = bazel(ROOT, "info", "bazel-bin")
    return done, Path(where.stdout.strip()) / "examples" / "bazel"


def test_everything_builds_and_passes(tested):
    done, _ = tested
    assert done.returncode == 0, done.stdout + done.stderr
    for test in ("//examples/bazel:ops_test", "//examples/bazel:ops_cc_test"):
        assert f"{test} " in done.stdout
        assert "2 tests pass" in done.stdout


def test_the_sandbox_and_the_command_line_build_the_same_bytes(tested, tmp_path):
    _, out = tested
    options = build_options.Options("scale", kinds=16, of_a_run=True, registration=True)
    building.run(LIBRARY / "scale_ops.py", tmp_path / "scale", options)
    names = {path.name for path in (tmp_path / "scale").iterdir()}
    assert names == {path.name for path in (out / "scale").iterdir() if path.suffix != ".params"}
    _, different, missing = filecmp.cmpfiles(
        out / "scale", tmp_path / "scale", names - {"timings.json"}, shallow=False
    )
    assert (different, missing) == ([], [])


def test_a_library_leaves_the_kernels_of_its_dep_to_it(tested):
    _, out = tested
    content = {
        name: json.loads((out / name / "manifest.json").read_text()) for name in ("scale", "gate")
    }
    ops = {name: {kernel["op"] for kernel in it["kernels"]} for name, it in content.items()}
    assert ops == {"scale": {"ScaleShift"}, "gate": {"GatedShift"}}
    assert [op["op"] for op in content["gate"]["ops"]] == ["ScaleShift", "GatedShift"]


def test_the_shared_library_has_the_name_that_users_know(tested):
    _, out = tested
    assert (out / "scale.so").resolve() == (out / "scale" / "libscale.so").resolve()
    assert (out / "gen_scale.py").is_file()
