"""Ours and TensorFlow on a model, and the files that others read: all compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnx
import pytest
import tensorflow as tf
from onnx.reference import ReferenceEvaluator

import composite
from benchmarks.sides import model_keras
from benchmarks.sides.model_keras import KerasModels, hand_out
from benchmarks.works import models
from benchmarks.works.model_work import ModelProgram, ModelWork
from composite.acceleration import timing


def two_outputs() -> keras.Model:
    """A model that takes a dict and returns one."""
    given = {"b": keras.Input((4,), name="b"), "a": keras.Input((4,), name="a")}
    x = keras.layers.Dense(4, activation="gelu")(given["b"]) - given["a"]
    return keras.Model(given, {"z": x, "y": keras.ops.max(x, axis=-1)})


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelProgram:
    monkeypatch.setattr(model_keras, "MODELS", {"two": two_outputs})
    monkeypatch.setattr(timing, "_BUDGET", 0.01)
    return ModelWork("two", 3, str(tmp_path)).program()


def test_all_ways_compute_the_same(program: ModelProgram) -> None:
    side = KerasModels()
    assert set(side.versions()) == {"tf-composite", "tensorflow", "keras"}
    columns = side.columns(program)
    assert list(columns) == ["ours", "regions alone", "TensorFlow", "TensorFlow with XLA"]
    for settings in columns.values():
        way = settings[""]()
        way.run()
        assert program.difference(way.result()) < 1e-5
    note = columns["ours"][""]().note
    assert note.startswith("runs ") and "kernels serve 1 of 1 regions" in note


def test_a_saved_model_gives_the_same_without_us(program: ModelProgram) -> None:
    KerasModels().columns(program)
    loaded = tf.saved_model.load(str(program.saved_model))
    serve = loaded.signatures["serving_default"]
    given = {name: tf.constant(x) for name, x in program.inputs.items()}
    found = serve(**given)
    assert sorted(found) == list(program.outputs) == ["output_0", "output_1"]
    assert program.difference([found[name].numpy() for name in program.outputs]) < 1e-6
    assert not serve.variables  # its weights are constants


def test_onnx_gives_the_same(program: ModelProgram) -> None:
    KerasModels().columns(program)
    model = onnx.load_from_string(program.onnx)
    found = ReferenceEvaluator(model).run(list(program.outputs), dict(program.inputs))
    assert program.difference(found) < 1e-5


def test_what_onnx_has_not_is_told(tmp_path: Path) -> None:
    program = ModelWork("lgamma", 1, str(tmp_path)).program()
    hand_out(program, tf.math.lgamma, tf.constant([3.0]))
    np.testing.assert_allclose(program.outputs["output_0"], [np.log(2.0)], rtol=1e-6)
    with pytest.raises(ValueError, match="tf2onnx does not convert all of the model: .*Lgamma"):
        _ = program.onnx


def test_regions_that_are_wrong_have_no_column(
    program: ModelProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(model: Any, *inputs: Any, **options: Any) -> Any:
        return accelerate(model, *inputs, **options | {"rtol": -1.0})

    accelerate = composite.accelerate
    monkeypatch.setattr(composite, "accelerate", without)
    columns = KerasModels().columns(program)
    assert list(columns) == ["ours", "TensorFlow"]
    assert columns["ours"][""]().note.startswith("runs the original")


def test_every_model_of_layers_can_be_handed_out(tmp_path: Path) -> None:
    model = models.tagger(width=4, length=3)
    program = ModelWork("tagger", 2, str(tmp_path)).program()
    hand_out(program, lambda x: model(x, training=False), models.inputs(model, 2))
    assert onnx.load_from_string(program.onnx).graph.output[0].name == "output_0"
