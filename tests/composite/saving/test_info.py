"""What a saved model needs, as text: printed by `composite info`, and inside the model."""

from __future__ import annotations

from pathlib import Path

import keras
import pytest
import tensorflow as tf
from click.testing import CliRunner

import composite
from composite import tf_op
from composite.cli.main import main
from composite.saving import contents, info
from tests.composite.saving import saved_ops
from tests.composite.tf_op import libraries
from tests.conftest import RunPython

OP = (
    "  SavedScale of tests.composite.saving.saved_ops (tests/composite/saving/saved_ops.py:10), "
    f"version {saved_ops.saved_scale.digest[:16]}"
)
SPEC = [tf.TensorSpec([2])]


def told(model: Path) -> str:
    done = CliRunner().invoke(main, ["info", str(model)])
    assert done.exit_code == 0, done.output
    return done.output


def carried(model: Path) -> str:
    return (model / contents.FOLDER / info.README).read_text()


def module(function: object) -> tf.Module:
    made = tf.Module()
    made.f = tf.function(function, input_signature=SPEC)
    return made


def test_composites_are_named_with_what_defines_them(tmp_path: Path) -> None:
    composite.save(module(saved_ops.saved_scale), tmp_path / "model")
    text = told(tmp_path / "model")
    assert text == carried(tmp_path / "model")
    assert text.startswith(f"This model was saved by TensorFlow {tf.__version__}.\n")
    assert OP in text.splitlines() and "composite.load_model" in text
    library = composite.build([saved_ops.saved_scale], tmp_path / "lib", name="info_lib")
    composite.save(module(saved_ops.saved_scale), tmp_path / "in", "inside", libraries=[library])
    assert "  libraries inside that define them: info_lib" in told(tmp_path / "in").splitlines()


def test_a_model_that_tensorflow_saved_is_read_where_its_ops_are_unknown(
    tmp_path: Path, run_python: RunPython
) -> None:
    tf.saved_model.save(module(saved_ops.saved_scale), str(tmp_path / "model"))
    code = "import sys\nfrom composite.cli.main import main\nmain(['info', sys.argv[1]])"
    lines = run_python(code, str(tmp_path / "model")).stdout.splitlines()
    digest = saved_ops.saved_scale.digest[:16]
    assert f"  SavedScale defined where the model was made, version {digest}" in lines
    assert OP in told(tmp_path / "model").splitlines()  # where the op is known


def test_functions_of_tvm_libraries_are_named(tmp_path: Path) -> None:
    library = tf_op.Module(libraries.kernels())
    addone, total = library["addone"], library["vector_add"]
    model = module(lambda x: total(addone(x), x))
    composite.save(model, tmp_path / "outside")
    line = f"  addone, vector_add of the library with SHA-256 {library.library} "
    assert line + "(not inside)" in told(tmp_path / "outside").splitlines()
    assert told(tmp_path / "outside") == carried(tmp_path / "outside")
    model.library = library.asset()
    composite.save(model, tmp_path / "inside", "portable")
    assert line + "(inside)" in told(tmp_path / "inside").splitlines()
    assert told(tmp_path / "inside") == carried(tmp_path / "inside")


def test_files_of_keras_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    x = keras.Input((3,))
    keras.Model(x, saved_ops.saved_scale(x)).save(path)
    text = told(path)
    assert text.startswith(f"This model was saved by Keras {keras.__version__}.\n")
    assert OP in text.splitlines()


def test_a_model_without_our_ops_needs_tensorflow_alone(tmp_path: Path) -> None:
    tf.saved_model.save(module(lambda x: x + 1), str(tmp_path / "model"))
    assert "It needs nothing but TensorFlow." in told(tmp_path / "model")


def test_ops_that_nobody_knows_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    tf.saved_model.save(module(lambda x: x + 1), str(folder))
    data = (folder / "saved_model.pb").read_bytes()
    assert b"AddV2" in data
    (folder / "saved_model.pb").write_bytes(data.replace(b"AddV2", b"AddV9"))
    lines = told(folder).splitlines()
    assert lines[
        lines.index("It has nodes of other ops, which TensorFlow and this process lack:") :
    ]
    assert "  AddV9" in lines


@pytest.mark.parametrize("name", ["none", "none.keras"])
def test_what_is_no_model_is_said(tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(main, ["info", str(tmp_path / name)])
    assert done.exit_code == 1 and str(tmp_path / name) in done.output
