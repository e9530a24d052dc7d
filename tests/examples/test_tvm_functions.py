"""The example of TVM functions, in each place that an op goes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import tf_op
from examples.tvm_functions import functions

CALL = "custom_call"  # how code of XLA calls a function
X, Y = tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tf_op.Module:
    path = tmp_path_factory.mktemp("tvm") / "kernels.so"
    functions.compiled(functions.kernels()).export_library(str(path))
    return tf_op.Module(path)


def in_session(function: Any, _: Any, *inputs: Any) -> Any:
    graph = tf.Graph()
    with graph.as_default():
        fed = [tf.compat.v1.placeholder(x.dtype, x.shape) for x in inputs]
        y = function(*fed)
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run(y, dict(zip(fed, map(np.asarray, inputs), strict=True)))


def in_saved_model(function: Any, library: tf_op.Module, *inputs: Any) -> Any:
    model = tf.Module()
    model.library = library.asset()
    signature = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in inputs]
    model.call = tf.function(function, input_signature=signature)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, folder)
        return composite.load_model(folder, native_code=True).call(*inputs)


WAYS = {
    "eager": lambda function, _, *inputs: function(*inputs),
    "tf.function": lambda function, _, *inputs: tf.function(function)(*inputs),
    "session": in_session,
    "saved model": in_saved_model,
    "XLA": lambda function, _, *inputs: tf.function(function, jit_compile=True)(*inputs),
}


@pytest.mark.parametrize("way", WAYS)
def test_addone(library: tf_op.Module, way: str) -> None:
    for addone in (library.func("addone", xla=CALL), library.func("addone", [2], xla=CALL)):
        np.testing.assert_array_equal(WAYS[way](addone, library, X), [2.0, 3.0])


@pytest.mark.parametrize("way", WAYS)
def test_vector_add_with_each_form_of_shape(library: tf_op.Module, way: str) -> None:
    add = library.func("vector_add", xla=CALL)
    static = library.func("vector_add", output_shape=[2], xla=CALL)
    ruled = library.func("vector_add", output_shape=lambda x, y: [x[0]], xla=CALL)
    forms = (
        static,
        ruled,
        lambda x, y: add(x, y, output_shape=tf.shape(x)),
        lambda x, y: add(x, y, output_shape=[tf.shape(x)[0]]),
    )
    for form in forms:
        np.testing.assert_array_equal(WAYS[way](form, library, X, Y), [4.0, 7.0])


@pytest.mark.parametrize("way", WAYS)
def test_two_dense_layers(way: str) -> None:
    module = tf_op.Module(functions.compiled(functions.TwoLayers), ir=functions.TwoLayers)
    layers = module.func("main", xla=CALL)
    draw = np.random.default_rng(0).normal
    x, w1, b1, w2, b2 = (
        tf.constant(draw(size=s), tf.float32) for s in ([3, 8], [8, 16], [16], [16, 4], [4])
    )
    expected = tf.nn.relu(x @ w1 + b1) @ w2 + b2
    y = WAYS[way](layers, module, x, w1, b1, w2, b2)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_a_saved_model_serves_without_tvm(
    library: tf_op.Module, tmp_path: Path, run_python: Any
) -> None:
    model = tf.Module()
    model.library = library.asset()
    model.call = tf.function(library["addone"], input_signature=[tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(model, str(tmp_path))
    code = """
import sys
import tensorflow as tf
import composite

model = composite.load_model(sys.argv[1], native_code=True)
print(model.call(tf.constant([1.0, 2.0])).numpy().tolist())
print("tvm" in sys.modules, "libtvm" in open("/proc/self/maps").read())
"""
    assert run_python(code, str(tmp_path)).stdout.split("\n")[:2] == ["[2.0, 3.0]", "False False"]
