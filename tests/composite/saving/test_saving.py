"""Saved models in three forms, loaded where the ops are and where nothing of ours is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import composite
from composite.cli.main import main
from composite.saving import contents
from tests.composite.saving import saved_ops
from tests.conftest import RunPython

X = np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3)
SPEC = tf.TensorSpec([4, 3])

# Runs a saved model in a process that has nothing of ours; prints numbers and a gradient.
STOCK = """
import json, sys
import numpy as np
import tensorflow as tf

x = tf.constant(np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3))
model = tf.saved_model.load(sys.argv[1])
with tf.GradientTape() as tape:
    tape.watch(x)
    y = model(x)
slope = tape.gradient(y, x)
served = model.signatures["serving_default"](x)["output_0"]
assert not any(name.startswith("composite") for name in sys.modules)
print(json.dumps([value.numpy().tolist() for value in (y, served, slope)]))
"""


class Model(tf.Module):
    """A layer with variables, in a branch and in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(np.eye(3, dtype=np.float32) * 0.5)

    @tf.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        x = saved_ops.saved_dense(x, self.w)
        for _ in tf.range(2):
            x = saved_ops.saved_scale(x)
        return tf.cond(x[0, 0] > 9.0, lambda: x, lambda: saved_ops.saved_scale(x, by=0.5))


def saved(folder: Path) -> Any:
    """The proto of a saved model."""
    return SavedModel.FromString((folder / "saved_model.pb").read_bytes())


def op_names(folder: Path) -> set[str]:
    graph_def = saved(folder).meta_graphs[0].graph_def
    nodes = (*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def))
    return {node.op for node in nodes}


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "portable"
    composite.save(Model(), folder, "portable")
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "lib"
    ops = [saved_ops.saved_scale, saved_ops.saved_dense]
    return composite.build(ops, folder, name="saved_lib")


def test_stock_tensorflow_runs_a_portable_model(portable: Path, run_python: RunPython) -> None:
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = Model()(x)
    done = run_python(STOCK, str(portable))
    called, served, slope = (np.float32(value) for value in json.loads(done.stdout))
    np.testing.assert_array_equal(called, y)
    np.testing.assert_array_equal(served, y)
    np.testing.assert_allclose(slope, tape.gradient(y, x), rtol=1e-6)


def test_a_portable_model_names_no_op_of_ours(portable: Path) -> None:
    assert not any(name.startswith(("Saved", "Composite")) for name in op_names(portable))
    listed = [op.name for op in saved(portable).meta_graphs[0].meta_info_def.stripped_op_list.op]
    assert listed == sorted(listed)
    assert {"MatMul", "Relu", "Mul"} <= set(listed)
    assert not any(name.startswith("Saved") for name in listed)


def test_keras_saves_as_it_exports(portable: Path, tmp_path: Path, run_python: RunPython) -> None:
    inputs = tf.keras.Input([3])
    model = tf.keras.Model(inputs, saved_ops.saved_scale(inputs))
    composite.save(model, tmp_path / "keras", "portable")
    code = (
        "import sys\nimport tensorflow as tf\n"
        "print(tf.saved_model.load(sys.argv[1]).serve(tf.ones([2, 3])).numpy().tolist())"
    )
    done = run_python(code, str(tmp_path / "keras"))
    assert json.loads(done.stdout) == [[2.0] * 3] * 2


def test_nodes_say_what_they_need(tmp_path: Path) -> None:
    composite.save(Model(), tmp_path / "nodes")
    extra = tmp_path / "nodes" / "assets.extra" / "composite"
    needs = json.loads((extra / "needs.json").read_text())
    assert [op["op"] for op in needs["ops"]] == ["SavedDense", "SavedScale"]
    assert needs["ops"][1]["digest"] == saved_ops.saved_scale.digest
    assert needs["libraries"] == {}
    assert "composite.load_model" in (extra / "README.txt").read_text()
    np.testing.assert_array_equal(
        composite.load_model(tmp_path / "nodes")(tf.constant(X)), Model()(tf.constant(X))
    )


def test_inside_brings_the_libraries(library: Path, tmp_path: Path, run_python: RunPython) -> None:
    folder = tmp_path / "inside"
    composite.save(Model(), folder, "inside", libraries=[library])
    code = """
import sys
import numpy as np
import tensorflow as tf
import composite

for native in (False, True):
    try:
        model = composite.load_model(sys.argv[1], native_code=native)
    except ValueError as error:
        print(error)
x = tf.constant(np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3))
print(model(x).numpy().tolist())
"""
    done = run_python(code, str(folder))
    refused, numbers = done.stdout.strip().splitlines()
    assert "native_code=True" in refused
    assert "SavedDense" in refused
    np.testing.assert_array_equal(np.float32(json.loads(numbers)), Model()(tf.constant(X)))


def test_a_library_inside_that_was_changed_is_not_loaded(
    library: Path, tmp_path: Path, run_python: RunPython
) -> None:
    folder = tmp_path / "inside"
    composite.save(Model(), folder, "inside", libraries=[library])
    manifest = folder / "assets.extra" / "composite" / "saved_lib" / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    code = "import sys, composite\ncomposite.load_model(sys.argv[1], native_code=True)"
    done = run_python(code, str(folder), check=False)
    assert "is not the library that was saved" in done.stderr


def test_inside_needs_a_library_for_each_op(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"SavedDense .* is in no built library"):
        composite.save(Model(), tmp_path / "inside", "inside")
    assert not (tmp_path / "inside").exists()


def test_without_the_ops_the_message_says_which(tmp_path: Path, run_python: RunPython) -> None:
    composite.save(Model(), tmp_path / "nodes")
    code = "import sys, composite\ncomposite.load_model(sys.argv[1])"
    done = run_python(code, str(tmp_path / "nodes"), check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError:")
    assert "SavedDense (of tests.composite.saving.saved_ops, " in last
    assert "saved_ops.py:" in last


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has to be one of nodes, inside, portable"):
        composite.save(Model(), tmp_path / "x", "expanded")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="is no SavedModel"):
        composite.save(tmp_path / "nothing", tmp_path / "x", "portable")
    with pytest.raises(FileNotFoundError, match="is no SavedModel"):
        composite.load_model(tmp_path / "nothing")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ValueError, match="is damaged"):
        composite.save(tmp_path / "damaged", tmp_path / "x", "portable")


def test_the_command_line_exports_a_saved_model(tmp_path: Path, portable: Path) -> None:
    composite.save(Model(), tmp_path / "nodes")
    arguments = [tmp_path / "nodes", "-o", tmp_path / "out", "--source", saved_ops.__file__]
    done = CliRunner().invoke(main, ["export", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    assert op_names(tmp_path / "out") == op_names(portable)
    refused = CliRunner().invoke(main, ["export", str(tmp_path), "-o", str(tmp_path / "no")])
    assert refused.exit_code == 1
    assert "is no SavedModel" in refused.output


def test_a_model_of_unknown_ops_is_not_saved_again(tmp_path: Path, run_python: RunPython) -> None:
    composite.save(Model(), tmp_path / "nodes")
    code = "import sys, composite\ncomposite.save(sys.argv[1], sys.argv[1] + '2', 'portable')"
    done = run_python(code, str(tmp_path / "nodes"), check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError: the model has nodes of a version of SavedDense")
    assert "import the module" in last


def test_a_model_is_not_saved_into_itself(tmp_path: Path) -> None:
    model = tmp_path / "model"
    composite.save(Model(), model)
    files = sorted(model.rglob("*"))
    (tmp_path / "link").symlink_to(model)
    for inside in (model / "again", model / "a" / "b", tmp_path / "link" / "again"):
        with pytest.raises(ValueError, match="lies in the model that is read"):
            composite.save(model, inside)
        with pytest.raises(ValueError, match="lies in the model that is read"):
            composite.accelerate(model, {}, out=inside)
    assert sorted(model.rglob("*")) == files
    composite.save(model, model)  # in its own place


def test_a_damaged_description_is_said(tmp_path: Path) -> None:
    composite.save(Model(), tmp_path / "model")
    needs = tmp_path / "model" / contents.FOLDER / "needs.json"
    needs.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ValueError, match=r"needs\.json is damaged .*nested too deeply"):
        composite.load_model(tmp_path / "model")
