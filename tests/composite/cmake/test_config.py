"""find_package(Composite) and composite_add_op_library, in projects that have nothing else."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import composite

pytestmark = pytest.mark.slow

ROOT = Path(composite.__file__).parents[1]
HEAD = "cmake_minimum_required(VERSION 3.20)\nproject(outside LANGUAGES NONE)\n"
OPS = '''
from composite import Composite
from helper import FACTOR

@Composite("CMakeScaled", inputs=["x: float"], outputs=["y: float"])
def scaled(x):
    """Scales."""
    return x * FACTOR
'''


def run(tool, *args, check=True):
    command = [Path(sysconfig.get_path("scripts")) / tool, *args]
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == check, done.stdout
    return done.stdout


def configure(folder, text, check=True):
    (folder / "CMakeLists.txt").write_text(HEAD + text)
    config = f"-DComposite_DIR={ROOT / 'composite' / 'cmake'}"
    python = f"-DPython_EXECUTABLE={sys.executable}"
    where = ("-S", folder, "-B", folder / "build", "-G", "Ninja")
    printed = run("cmake", *where, config, python, check=check)
    return " ".join(printed.split())  # CMake breaks the lines of messages


def test_a_library_is_built_once_and_installed(tmp_path):
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / "ops.py").write_text(OPS)
    (folder / "helper.py").write_text("FACTOR = 2.0\n")
    configure(
        folder,
        "find_package(Composite REQUIRED)\n"
        "composite_add_op_library(scaled_ops SOURCE ops.py NAME outside KINDS 0 DESTINATION lib)\n"
        'file(WRITE "${CMAKE_BINARY_DIR}/version" "${Composite_VERSION} ${Composite_RUNTIME}")\n',
    )
    version, runtime = (folder / "build" / "version").read_text().split(" ", 1)
    assert version == composite.__version__
    assert Path(runtime) == ROOT / "composite" / "runtime" / "libcomposite_runtime.so"

    build = folder / "build"
    assert "built " in run("ninja", "-C", build)
    assert "no work to do" in run("ninja", "-C", build)
    os.utime(folder / "helper.py")  # which no line of CMakeLists.txt names
    assert "nothing has changed" in run("ninja", "-C", build)
    assert "no work to do" in run("ninja", "-C", build)

    run("cmake", "--install", build, "--prefix", tmp_path / "installed")
    installed = tmp_path / "installed" / "lib"
    assert {path.name for path in installed.iterdir()} == {
        "liboutside.so", "liboutside_kernels.so", "outside.py", "outside.pyi", "outside.mlir",
        "outside.md", "manifest.json", "timings.json",
    }  # fmt: skip
    manifest = json.loads((installed / "manifest.json").read_text())
    assert [op["op"] for op in manifest["ops"]] == ["CMakeScaled"]
    assert set(manifest["inputs"]["files"]) == {"helper.py", "ops.py"}
    assert composite.load(installed).scaled(3.0).numpy() == 6.0

    (folder / "ops.py").write_text(OPS.replace("FACTOR", "UNKNOWN", 1))  # of the import alone
    before = (build / "outside" / "manifest.json").read_bytes()
    assert "cannot import name 'UNKNOWN'" in run("ninja", "-C", build, check=False)
    assert (build / "outside" / "manifest.json").read_bytes() == before


def test_versions_that_are_asked_for(tmp_path):
    major, minor, patch = (int(part) for part in composite.__version__.split("."))
    configure(tmp_path, f"find_package(Composite {major}.{minor} REQUIRED)\n")
    for wanted in (f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}", f"{major + 1}.0"):
        printed = configure(tmp_path, f"find_package(Composite {wanted} REQUIRED)\n", check=False)
        assert f"version: {composite.__version__}" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("NAME x", "SOURCE is missing, the Python file"),
        ("SOURCE ops.py SIGNATURE x.json", "not understood: SIGNATURE x.json"),
        ("SOURCE ops.py NAME", "not understood: NAME"),
    ],
)
def test_what_is_not_understood_is_an_error(tmp_path, arguments, message):
    text = f"find_package(Composite REQUIRED)\ncomposite_add_op_library(my_ops {arguments})\n"
    assert message in configure(tmp_path, text, check=False)
