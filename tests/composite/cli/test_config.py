"""`composite config`: the flags by which a C or C++ program is built, and then runs by itself."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
import tensorflow as tf
from click.testing import CliRunner

from composite.cli.main import main

PROGRAM = """
#include "composite/runtime/hybrid_c_api.h"
#include "tensorflow/c/c_api.h"
#include <cstdio>
int main() {
  char error[512];
  composite_hybrid* model;
  composite_open_hybrid("none.so", &model, error, sizeof(error));
  std::printf("%s: %s\\n", TF_Version(), error);
}
"""


def flags(*asked: str) -> list[str]:
    done = CliRunner().invoke(main, ["config", *asked])
    assert done.exit_code == 0, done.output
    return shlex.split(done.output)


@pytest.mark.slow
def test_a_program_runs_without_a_search_path(tmp_path: Path) -> None:
    (tmp_path / "program.cc").write_text(PROGRAM)
    built = ["c++", "program.cc", *flags("--hybrid", "--cflags", "--libs"), "-o", "program"]
    subprocess.run(built, cwd=tmp_path, check=True)
    alone = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [tmp_path / "program"], cwd=tmp_path, env=alone, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(tf.__version__)
    assert "cannot open none.so: No such file" in done.stdout


def test_what_is_asked_is_told() -> None:
    assert all(flag.startswith(("-I", "-isystem", "/")) for flag in flags("--cflags"))
    libs = flags("--libs")
    assert "-l:libcomposite_runtime.so" in libs
    assert not [flag for flag in libs if "tvm" in flag]
    assert "-l:libtvm_ffi.so" in flags("--libs", "--hybrid")
    elsewhere = flags("--libs", "--rpath", "$ORIGIN", "--rpath", "/opt/my lib")
    assert [f for f in elsewhere if "rpath" in f] == [
        "-Wl,-rpath,$ORIGIN",
        "-Wl,-rpath,/opt/my lib",
    ]
    done = CliRunner().invoke(main, ["config"])
    assert done.exit_code == 2
    assert "say --cflags, --libs or both" in done.output
