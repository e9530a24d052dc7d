"""Keras' own files with the libraries of their ops inside."""

from __future__ import annotations

import copy
import json
import tempfile
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import composite
from composite.saving import contents
from tests.composite.saving import saved_ops
from tests.conftest import RunPython

X = np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3)

LOAD = """
import sys
import numpy as np
import composite

for native in (False, True):
    try:
        model = composite.load_model(sys.argv[1], native_code=native)
    except ValueError as error:
        print(error)
x = np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3)
print(*np.asarray(model(x)).ravel())
model.save(sys.argv[1])  # Keras writes its own entries alone
try:
    composite.load_model(sys.argv[1] + ".keras")
except FileNotFoundError as error:
    print(error)
"""


def model() -> keras.Model:
    x = keras.Input((3,))
    return keras.Model(x, keras.layers.Dense(3, activation=saved_ops.saved_scale)(x))


def test_libraries_inside(tmp_path: Path, run_python: RunPython) -> None:
    library = composite.build([saved_ops.saved_scale], tmp_path / "lib", name="saved_keras")
    original, path = model(), tmp_path / "model.keras"
    composite.save(original, path, "inside", libraries=[library])
    refused, numbers, absent = run_python(LOAD, str(path)).stdout.strip().splitlines()
    assert "SavedScale" in refused and "native_code=True" in refused
    np.testing.assert_allclose(
        np.array(numbers.split(), np.float32), np.asarray(original(X)).ravel(), rtol=1e-6
    )
    assert absent.startswith("there is no file ")
    with zipfile.ZipFile(path) as archive:  # as Keras wrote it again
        assert not [one for one in archive.namelist() if one.startswith(str(contents.FOLDER))]


def test_what_a_file_needs_is_said(tmp_path: Path, run_python: RunPython) -> None:
    original, path = model(), tmp_path / "model.keras"
    with pytest.raises(ValueError, match="no graph that could be portable"):
        composite.save(original, path, "portable")
    with pytest.raises(ValueError, match=r"SavedScale .* is in no built library"):
        composite.save(original, path, "inside")
    assert not list(tmp_path.iterdir())
    composite.save(original, path)
    np.testing.assert_array_equal(composite.load_model(path)(X), original(X))
    np.testing.assert_array_equal(keras.models.load_model(path)(X), original(X))
    code = "import sys, composite\ncomposite.load_model(sys.argv[1])"
    last = run_python(code, str(path), check=False).stderr.strip().splitlines()[-1]
    assert "SavedScale (of tests.composite.saving.saved_ops, " in last
    with pytest.raises(ValueError, match="has no tags and no options"):
        composite.load_model(path, tags=["serve"])
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match="is damaged"):
        composite.load_model(path)


MODELS = """
import sys
import keras
from tests.composite.saving import saved_ops

x = keras.Input((3,))
keras.Model(x, keras.layers.Dense(3, activation=saved_ops.saved_scale)(x)).save(sys.argv[1])
keras.Model(x, saved_ops.saved_scale(x)).save(sys.argv[2])
"""

WITHOUT_OPS = """
import sys
import keras

for path in sys.argv[2:]:
    try:
        keras.models.load_model(path)
    except Exception as error:
        print(type(error).__name__, " ".join(str(error).split()))
import composite
for path in sys.argv[2:]:
    try:
        composite.load_model(path)
    except ImportError as error:
        print(error)
from tests.composite.saving import saved_ops
for path in sys.argv[2:]:
    print(composite.load_model(path).count_params() == keras.models.load_model(path).count_params())
"""


@pytest.mark.slow
def test_what_to_import_is_said_of_files_that_keras_wrote(
    tmp_path: Path, run_python: RunPython
) -> None:
    paths = [str(tmp_path / f"{kind}.keras") for kind in ("activation", "call")]
    run_python(MODELS, *paths)
    lines = run_python(WITHOUT_OPS, "", *paths).stdout.strip().splitlines()
    place = "SavedScale (of tests.composite.saving.saved_ops, tests/composite/saving/saved_ops.py:"
    for line in lines[:2]:
        assert line.startswith("TypeError ")
        assert "SavedScale is defined by tests.composite.saving.saved_ops (tests/" in line
        assert "import that module, or composite.load that library, before" in line
    for path, line in zip(paths, lines[2:4], strict=True):
        assert f"{path} needs {place}" in line and "import the module" in line
    assert lines[4:] == ["True"] * 2


def test_what_is_no_file_of_keras_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(ValueError, match="is no file of Keras, or is damaged"):
        composite.load_model(path)


def test_a_search_builds_copies_and_restores_models(tmp_path: Path) -> None:
    """What KerasTuner does with a hypermodel, and `keras.models.clone_model`."""
    trained = []
    for seed in (1, 2):
        keras.backend.clear_session()
        keras.utils.set_random_seed(seed)
        trial = model()
        trial.compile("sgd", loss="mse", jit_compile=False)
        trial.fit(X, X[:, ::-1], epochs=1, verbose=0)
        weights = tmp_path / f"{seed}.weights.h5"
        trial.save_weights(weights)
        trained.append((weights, np.asarray(trial(X))))
    keras.backend.clear_session()
    best, (weights, wanted) = model(), trained[0]
    best.load_weights(weights)
    np.testing.assert_allclose(best(X), wanted, rtol=1e-6)
    assert not np.allclose(wanted, trained[1][1])
    copied = keras.models.clone_model(best)
    copied.set_weights(best.get_weights())
    for one in (copied, copy.deepcopy(best)):
        np.testing.assert_allclose(one(X), wanted, rtol=1e-6)


def _with_library(path: Path, size: int, folder: str = "made") -> None:
    """A file of Keras beside whose model lies so much of a library, all of it zeros."""
    original = model()
    original.save(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        needs = {"format": 1, "ops": [], "libraries": {}}
        archive.writestr(str(contents.FOLDER / "needs.json"), json.dumps(needs))
        archive.writestr(str(contents.FOLDER / folder / "lib.so"), bytes(size))


def test_a_file_unpacks_no_more_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, room = tmp_path / "model.keras", tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    _with_library(path, 50 << 20)
    np.testing.assert_array_equal(composite.load_model(path)(X).shape, (4, 3))
    assert sum(one.stat().st_size for one in room.rglob("*") if one.is_file()) < 1 << 16
    with pytest.raises(ValueError, match=r"would unpack \d+ bytes to \d+, far more than"):
        composite.load_model(path, native_code=True)
    assert sum(one.stat().st_size for one in room.rglob("*") if one.is_file()) < 1 << 16
    _with_library(path, 50 << 20, folder="")  # beside what the model needs
    with pytest.raises(ValueError, match=r"would unpack \d+ bytes to \d+, far more than"):
        composite.load_model(path)
