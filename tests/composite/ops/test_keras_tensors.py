"""Ops in Keras models: called with its symbolic tensors, saved and loaded."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from tests.composite.ops.keras_ops import Scale, error, mish, turn

# Equal bits are asked for, and no kernel comes between two calls.
pytestmark = pytest.mark.usefixtures("expansions_only")

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


def functional():
    x, y = keras.Input((4,)), keras.Input((4,))
    s, d = turn([x, y], by=2.0, kind=tf.float64, sizes=[1, 2], name="turned")
    return keras.Model([x, y], [mish(s), d])


def test_a_call_with_keras_tensors_is_an_operation_of_the_model():
    model = functional()
    assert [y.shape for y in model.outputs] == [(None, 4), (None, 4)]
    assert [y.dtype for y in model.outputs] == ["float32", "float64"]
    assert model.operations[2].name == "turned"
    found = model([X, 2 * X])
    s, d = turn([X, 2 * X], by=2.0, kind=tf.float64, sizes=[1, 2])
    np.testing.assert_array_equal(found[0], mish(s))
    np.testing.assert_array_equal(found[1], d)


def test_two_calls_of_an_op_have_two_names():
    x = keras.Input((4,))
    model = keras.Model(x, mish(mish(x)))
    np.testing.assert_array_equal(model(X), mish(mish(X)))


def test_a_model_trains_through_the_operation():
    x = keras.Input((4,))
    model = keras.Model(x, mish(keras.layers.Dense(1)(x)))
    model.compile("sgd", loss=error)
    losses = model.fit(X, X[:, :1], epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    "copied", [keras.models.clone_model, lambda m: m.from_config(m.get_config())]
)
def test_a_functional_model_is_copied(copied):
    model = functional()
    for found, expected in zip(copied(model)([X, X]), model([X, X]), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_is_no_tensor_is_told_as_before():
    with pytest.raises((TypeError, ValueError), match="convert"):
        mish(object())


LOAD = """
import sys, numpy as np, keras
import tests.composite.ops.keras_ops
for path in sys.argv[1:]:
    model = keras.models.load_model(path)
    x = np.load(path + ".npy")
    found = keras.tree.flatten(model([x] * len(model.inputs)))
    np.savez(path + ".npz", *[np.asarray(y) for y in found])
"""


def test_models_are_saved_and_load_in_another_process(tmp_path, run_python):
    layers = keras.layers
    sequential = keras.Sequential(
        [layers.Input((4,)), layers.Dense(3, activation=mish), layers.Lambda(mish)]
    )
    sequential.compile("sgd", loss=error)
    models = {"sequential": sequential, "functional": functional()}
    paths = []
    for name, model in models.items():
        paths.append(str(tmp_path / f"{name}.keras"))
        model.save(paths[-1])
        np.save(paths[-1] + ".npy", X)
    run_python(LOAD, *paths)
    for path, model in zip(paths, models.values(), strict=True):
        expected = keras.tree.flatten(model([X] * len(model.inputs)))
        with np.load(path + ".npz") as found:
            for i, one in enumerate(expected):
                np.testing.assert_allclose(found[f"arr_{i}"], one, rtol=1e-6)


SERVE = """
import sys, numpy as np, tensorflow as tf
import tests.composite.ops.keras_ops
x, = np.load(sys.argv[1] + ".npz").values()
served = tf.saved_model.load(sys.argv[1])
np.savez(sys.argv[1] + ".served.npz", served.serve(x), served.serve(x[:1]))
"""


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_body_that_casts_under_mixed_precision(policy, tmp_path, run_python):
    layers = keras.layers
    keras.utils.set_random_seed(1)
    between = [Scale(dtype=policy, name="cast"), layers.Dense(4, dtype=policy, activation="tanh")]
    model = keras.Sequential([layers.Input((4,)), *between, Scale(dtype=policy)])
    model.compile("adam", loss="mse")
    x = np.concatenate([X, -X, X[::-1]])
    losses = model.fit(x, x[:, ::-1], batch_size=3, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    predicted = model.predict(x, verbose=0)
    assert f"mixed_{predicted.dtype}" == policy

    expected = np.asarray(model(x), np.float32)
    close = functools.partial(np.testing.assert_allclose, rtol=0.02, atol=0.02)
    close(np.asarray(predicted, np.float32), expected)
    path = str(tmp_path / "model")
    model.save(path + ".keras")
    again = keras.models.load_model(path + ".keras")
    close(np.asarray(again(x), np.float32), expected)
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = tf.TensorSpec((None, 4), tf.float32)
    archive.add_endpoint("serve", lambda x: tf.cast(model(x), tf.float32), [spec])
    archive.write_out(path)
    np.savez(path + ".npz", x)
    run_python(SERVE, path)
    with np.load(path + ".served.npz") as served:
        close(served["arr_0"], expected)
        close(served["arr_1"], expected[:1])


def test_a_model_whose_op_is_not_imported_says_which_is_missing(tmp_path, run_python):
    @Composite("KerasForgotten", inputs=["x: float"], outputs=["y: float"])
    def forgotten(x):
        return x + 1.0

    path = str(tmp_path / "model.keras")
    keras.Sequential([keras.layers.Input((4,)), keras.layers.Activation(forgotten)]).save(path)
    load = f"import keras, composite; keras.models.load_model({path!r})"
    done = run_python(load, check=False)
    assert done.returncode == 1
    assert "composite>KerasForgotten" in done.stderr
    assert "imported" in done.stderr


def test_the_newest_version_of_a_name_is_loaded():
    def define(by):
        @Composite("KerasNewer", inputs=["x: float"], outputs=["y: float"])
        def newer(x):
            return x + by

        return newer

    saved = keras.saving.serialize_keras_object(define(1.0))
    second = define(2.0)
    assert keras.saving.deserialize_keras_object(saved) is second


def test_registered_by_hand_and_as_a_custom_object():
    keras.saving.register_keras_serializable("mine")(mish)
    layer = keras.layers.Activation(mish)
    with keras.saving.custom_object_scope({"KerasMish": mish}):
        again = keras.layers.Activation.from_config(layer.get_config())
    assert again.activation is mish
