"""A workspace of somebody else: this repository beside it, tf-composite installed with pip."""

from __future__ import annotations

import sysconfig
import venv
from pathlib import Path

import pytest

import composite
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

# That of docs/bazel.md, which test_the_documented_workspace_is_the_one_here compares.
WORKSPACE = """\
local_repository(name = "tf_composite", path = "{root}")

load("@tf_composite//bazel:debian.bzl", "debian_rules")
load("@tf_composite//bazel:python.bzl", "local_python")

debian_rules()

local_python(name = "composite_python")

register_toolchains("@composite_python//:toolchain")
"""
BUILD = """\
load("@rules_python//python:defs.bzl", "py_library", "py_test")
load("@tf_composite//:build_defs.bzl", "gen_op_libraries")

py_library(
    name = "factors",
    srcs = ["factors.py"],
)

gen_op_libraries(
    name = "doubling",
    src = "doubling_ops.py",
    deps = [":factors"],
    kinds = 0,
    test = True,
)

py_test(
    name = "doubling_test",
    srcs = ["doubling_test.py"],
    python_version = "PY3",
    deps = [":doubling"],
)
"""
OPS = """\
from composite import Composite
from models.factors import FACTOR

@Composite("BazelDoubled", inputs=["x: float"], outputs=["y: float"])
def doubled(x):
    return x * FACTOR
"""
TEST = """\
import sys
from models.gen_doubling import doubled

assert doubled([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
assert sys.prefix == {prefix!r}, sys.prefix
"""
TARGETS = ("doubling", "doubling.so", "doubling_cc", "doubling_mlir", "doubling_py",
           "gen_doubling", "registered_doubling")  # fmt: skip


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has this package and what the tests run with, as if installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    paths = [str(Path(composite.__file__).parents[1]), sysconfig.get_path("purelib")]
    (packages / "installed.pth").write_text("\n".join(paths))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Path:
    """A workspace with a package `models`."""
    root = tmp_path_factory.mktemp("workspace")
    (root / "WORKSPACE").write_text(WORKSPACE.format(root=ROOT))
    models = root / "models"
    models.mkdir()
    prefix = str(python.parents[1])
    for name, text in {
        "BUILD": BUILD,
        "factors.py": "FACTOR = 2.0\n",
        "doubling_ops.py": OPS,
        "doubling_test.py": TEST.format(prefix=prefix),
    }.items():
        (models / name).write_text(text)
    return root


def test_an_interpreter_that_is_not_there_is_named(bazel, workspace):
    done = bazel(workspace, "build", "//models:doubling", python="/nowhere/python")
    assert done.returncode != 0
    assert "COMPOSITE_PYTHON is /nowhere/python, which is not there" in done.stderr
    done = bazel(workspace, "build", "//models:doubling", python="")
    assert "There is no Python to build op libraries with" in done.stderr
    assert f"make a virtual environment .venv in the workspace, {workspace}" in done.stderr


def test_an_interpreter_without_the_package_is_told_what_to_install(bazel, workspace, tmp_path):
    venv.create(tmp_path, with_pip=False, symlinks=True)
    python = str(tmp_path / "bin" / "python")
    done = bazel(workspace, "build", "//models:doubling", python=python)
    assert done.returncode != 0
    assert f"{python} has no tf-composite" in done.stderr
    assert f"-m pip install 'tf-composite[compiler,cpu]=={composite.__version__}'" in done.stderr


def test_all_targets_are_there_and_the_library_runs(bazel, workspace, python):
    done = bazel(workspace, "test", "//...", "--test_output=errors", python=str(python))
    assert done.returncode == 0, done.stdout + done.stderr
    done = bazel(workspace, "query", "kind(rule, //models:all)")
    assert {f"//models:{name}" for name in TARGETS} < set(done.stdout.split())


def test_a_mistake_is_shown_at_its_place_in_the_workspace(bazel, workspace, python):
    source = workspace / "models" / "doubling_ops.py"
    source.write_text(OPS.replace("x * FACTOR", "x * FACTR"))
    done = bazel(workspace, "build", "//models:doubling", python=str(python))
    assert done.returncode != 0
    assert "//models:doubling: " in done.stderr
    assert 'File "models/doubling_ops.py", line 6' in done.stderr
    assert "`FACTR` is not defined" in done.stderr
    source.write_text(OPS)


def test_an_import_that_is_not_declared_is_not_found(bazel, workspace, python):
    build = workspace / "models" / "BUILD"
    build.write_text(BUILD.replace('deps = [":factors"],', ""))
    done = bazel(workspace, "build", "//models:doubling", python=str(python))
    assert done.returncode != 0
    assert "No module named 'models.factors'" in done.stderr
    build.write_text(BUILD)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ('name = "doubling_ops"', "conflicts with op Python wrapper"),
        ('name = "doubling-2"', "is not an identifier"),
        ('src = "factors.txt"', "which is no Python file"),
    ],
)
def test_a_wrong_call_of_the_macro(bazel, workspace, python, attribute, message):
    build = workspace / "models" / "BUILD"
    was = 'src = "doubling_ops.py"' if attribute.startswith("src") else 'name = "doubling"'
    build.write_text(BUILD.replace(was, attribute))
    done = bazel(workspace, "build", "//models:all", python=str(python))
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr
    build.write_text(BUILD)


def test_the_documented_workspace_is_the_one_here():
    text = (ROOT / "docs" / "bazel.md").read_text(encoding="utf-8")
    assert WORKSPACE.partition("\n")[2] in text
