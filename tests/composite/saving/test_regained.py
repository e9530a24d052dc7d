"""Calls of a portable model where the ops are: nodes with kernels again, or the functions still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import composite
from tests.composite.saving import saved_ops

pytestmark = pytest.mark.usefixtures("kernels_win")
X = np.linspace(-1.0, 1.0, 64, dtype=np.float32)


class Model(tf.Module):
    """Calls in the function itself, in a loop and in a branch."""

    @tf.function(input_signature=[tf.TensorSpec([64])])
    def __call__(self, x: Any) -> Any:
        y, slope = saved_ops.saved_polynomial(x, order=4)
        for _ in tf.range(2):
            y += saved_ops.saved_polynomial(x, order=3)[1]
        return tf.cond(
            y[0] > 99.0, lambda: y, lambda: slope + saved_ops.saved_polynomial(y, order=2)[0]
        )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "portable"
    composite.save(Model(), folder, "portable")
    Model()(tf.constant(X))  # asks for its kernels
    assert composite.wait(120)
    return folder


def launches(model: Any, x: Any = X) -> tuple[Any, int]:
    """What a model gives, and how many kernels ran for it."""
    before = composite.stats()
    y = model(tf.constant(x))
    return y.numpy(), (composite.stats() - before)["kernel_launches"]


def edited(model: Path, folder: Path, edit: Callable[[Any], None]) -> Any:
    """The model with its graph edited, loaded."""
    composite.save(model, folder)
    path = folder / "saved_model.pb"
    saved = SavedModel.FromString(path.read_bytes())
    edit(saved.meta_graphs[0].graph_def)
    path.write_bytes(saved.SerializeToString())
    return tf.saved_model.load(str(folder))


def calls(graph_def: Any) -> list[Any]:
    nodes = (node for function in graph_def.library.function for node in function.node_def)
    return [node for node in nodes if "_composite_stands_for" in node.attr]


def test_calls_are_nodes_again(model: Path) -> None:
    expected, as_nodes = launches(Model())
    assert as_nodes == 4
    y, ran = launches(tf.saved_model.load(str(model)))
    np.testing.assert_array_equal(y, expected)
    assert ran == as_nodes


def test_functions_that_the_loader_edits_are_known(tmp_path: Path) -> None:
    """It notes the types of shapes, and names the results anew where two are one tensor."""
    model = tf.Module()
    model.run = tf.function(saved_ops.saved_twice, input_signature=[tf.TensorSpec([None])])
    composite.save(model, tmp_path / "portable", "portable")
    model.run(X)  # asks for its kernel
    assert composite.wait(120)
    loaded = tf.saved_model.load(str(tmp_path / "portable"))
    before = composite.stats()
    for y in loaded.run(tf.constant(X)):
        np.testing.assert_array_equal(y, X * 64)
    assert (composite.stats() - before)["kernel_launches"] == 1


def test_a_function_that_was_altered_stays_what_it_is(model: Path, tmp_path: Path) -> None:
    def alter(graph_def: Any) -> None:
        own = [f for f in graph_def.library.function if "_implements" in f.attr]
        for node in (node for function in own for node in function.node_def):
            if node.op == "Const" and node.attr["value"].tensor.float_val[:] == [1.0]:
                node.attr["value"].tensor.float_val[:] = [0.0]  # what each step adds

    y, ran = launches(edited(model, tmp_path / "altered", alter))
    np.testing.assert_array_equal(y, np.zeros_like(X))
    assert ran == 0


def test_a_version_that_is_not_here_keeps_its_function(model: Path, tmp_path: Path) -> None:
    def age(graph_def: Any) -> None:
        for node in calls(graph_def):
            stands_for = NodeDef.FromString(node.attr["_composite_stands_for"].s)
            stands_for.attr["_composite_program"].s = b"0" * 64
            node.attr["_composite_stands_for"].s = stands_for.SerializeToString()

    y, ran = launches(edited(model, tmp_path / "older", age))
    np.testing.assert_allclose(y, launches(Model())[0], rtol=1e-6)
    assert ran == 0


@pytest.mark.parametrize("damage", [b"", b"\xff\xff", NodeDef(op="Add").SerializeToString()])
def test_a_damaged_mark_leaves_the_call(model: Path, tmp_path: Path, damage: bytes) -> None:
    def spoil(graph_def: Any) -> None:
        for node in calls(graph_def):
            node.attr["_composite_stands_for"].s = damage

    y, ran = launches(edited(model, tmp_path / "damaged", spoil))
    np.testing.assert_allclose(y, launches(Model())[0], rtol=1e-6)
    assert ran == 0


def test_the_gradient_of_a_loaded_model_is_right(model: Path) -> None:
    slopes = []
    for way in (Model(), tf.saved_model.load(str(model))):
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = way(x)
        slopes.append(tape.gradient(y, x))
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-5, atol=1e-6)
