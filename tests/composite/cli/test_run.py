"""`composite run`: programs that know nothing of the package, with ops loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from tests.composite.saving import saved_ops
from tests.conftest import environment

SOURCE = ("--source", saved_ops.__file__)


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "composite", "run", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel with a composite."""
    folder = tmp_path_factory.mktemp("model") / "model"
    module = tf.Module()
    module.f = tf.function(saved_ops.saved_scale, input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(module, str(folder), signatures=module.f)
    return folder


def test_a_command_on_path_meets_the_ops(model: Path, tmp_path: Path) -> None:
    asked = ("--dir", model, "--tag_set", "serve", "--signature_def", "serving_default")
    done = run(
        *SOURCE, "saved_model_cli", "run", *asked, "--input_exprs", "x=[1.,2.]", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "[2. 4.]" in done.stdout


def test_a_file_has_its_arguments_folder_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("CODE = 5\n")
    program = tmp_path / "program.py"
    program.write_text("import sys, beside\nprint(__name__, sys.argv[1:])\nsys.exit(beside.CODE)\n")
    done = run("program.py", "--debug", "x", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (5, "__main__ ['--debug', 'x']\n")


def test_a_module_is_run_by_name(tmp_path: Path) -> None:
    done = run("-m", "json.tool", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "json" in done.stdout


def test_an_error_of_the_program_is_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise KeyError('mine')\n")
    done = run("program.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.strip().endswith("KeyError: 'mine'")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("missing.py", "there is no file missing.py, and no command of that name on PATH"),
        ("ls", "is not written in Python: a C program calls composite_load_library"),
    ],
)
def test_what_cannot_be_run_is_said(program: str, message: str, tmp_path: Path) -> None:
    done = run(program, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
