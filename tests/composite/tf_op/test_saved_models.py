"""Libraries inside saved models: they travel, are asked for, and are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import tf_op
from composite.tf_op import saved_models
from tests.composite.tf_op import libraries

_USE = """
import sys
import tensorflow as tf
import composite
from composite import tf_op

model = tf.saved_model.load(sys.argv[1])
x = tf.constant([1.0, 2.0])
try:
    model.call(x)
except tf.errors.FailedPreconditionError as error:
    print("composite.load_model(folder, native_code=True)" in error.message)
try:
    composite.load_model(sys.argv[1])
except ValueError as error:
    print("needs TVM libraries (" in str(error) and "native_code=True" in str(error))
composite.load_model(sys.argv[1], native_code=True)
composite.load_model(sys.argv[1])  # there is nothing left to consent to
print(model.call(x).numpy().tolist())
try:
    with tf.GradientTape() as tape:
        tape.watch(x)
        model.call(x)
except LookupError as error:
    print("has no gradient" in str(error))
"""


class Model(tf.Module):
    def __init__(self, module: tf_op.Module, *, carried: bool = True) -> None:
        super().__init__()
        if carried:
            self.library = module.asset()
        self._addone = module.func("addone")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def call(self, x: Any) -> Any:
        return self._addone(x)


def test_a_model_carries_its_library(
    kernels: tf_op.Module, tmp_path: Path, run_python: Any
) -> None:
    tf.saved_model.save(Model(kernels), str(tmp_path))
    assert [path.name for path in (tmp_path / "assets").iterdir()] == ["kernels.so"]
    lines = run_python(_USE, str(tmp_path)).stdout.splitlines()
    assert lines == ["True", "True", "[2.0, 3.0]", "True"]


def test_a_damaged_or_missing_library_is_refused(kernels: tf_op.Module, tmp_path: Path) -> None:
    tf.saved_model.save(Model(kernels), str(tmp_path / "with"))
    library = tmp_path / "with" / "assets" / "kernels.so"
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    library.write_bytes(content)
    with pytest.raises(FileNotFoundError, match="the file was changed since"):
        saved_models.load(tmp_path / "with", [kernels.library])
    tf.saved_model.save(Model(kernels, carried=False), str(tmp_path / "without"))
    with pytest.raises(FileNotFoundError, match=r"model\.library = module\.asset\(\)"):
        saved_models.load(tmp_path / "without", [kernels.library])


def test_a_library_under_the_name_of_an_asset(kernels: tf_op.Module, tmp_path: Path) -> None:
    """TensorFlow numbers assets of one name; a library is known by its bytes."""
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "kernels.so"
    other.write_bytes(b"no library")
    model = Model(kernels)
    model.other = tf.saved_model.Asset(str(other))
    tf.saved_model.save(model, str(tmp_path / "model"))
    assert len(list((tmp_path / "model" / "assets").iterdir())) == 2
    saved_models.load(tmp_path / "model", [kernels.library])
    assert saved_models.missing(tmp_path / "model") == []


def test_a_program_in_a_model(program: tf_op.Module, tmp_path: Path) -> None:
    model = tf.Module()
    model.library = program.asset()
    layer = program.func("main", output_shape=lambda x, w: [x[0], w[1]])
    model.call = tf.function(
        layer, input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([4, 5])]
    )
    tf.saved_model.save(model, str(tmp_path))
    x, w = tf.ones([2, 4]), tf.ones([4, 5])
    model = composite.load_model(tmp_path, native_code=True)
    np.testing.assert_array_equal(model.call(x, w), x @ w)


def test_the_libraries_are_those_of_files() -> None:
    assert tf_op.Module(libraries.kernels()).asset().asset_path.numpy().endswith(b"kernels.so")
