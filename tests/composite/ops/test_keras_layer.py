"""`op.as_layer()`: trained, saved, cloned, in mixed precision, exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from composite.ops.keras_layer import CompositeLayer
from tests.composite.ops.keras_ops import mish, scale, turn

# Equal bits are asked for, and no kernel comes between two calls.
pytestmark = pytest.mark.usefixtures("expansions_only")

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


def model(dtype: Any = None) -> Any:
    x = keras.Input((4,))
    gain = {"shape": [("x", -1)], "initializer": "ones"}
    y = scale.as_layer({"gain": gain}, name="scaled", dtype=dtype)(x)
    return keras.Model(x, mish.as_layer(dtype=dtype)(y))


def test_a_layer_trains_its_variables() -> None:
    trained = model()
    layer = trained.get_layer("scaled")
    assert isinstance(layer, CompositeLayer)
    assert [(v.name, v.shape) for v in layer.trainable_variables] == [("gain", (4,))]
    np.testing.assert_array_equal(trained(X), mish(scale(X, np.ones(4, np.float32))))
    trained.compile("sgd", "mse")  # jit_compile="auto"
    (before,) = layer.get_weights()
    trained.fit(X, np.zeros_like(X), verbose=0)
    assert (layer.get_weights()[0] != before).all()


def test_saved_cloned_and_exported(tmp_path: Path) -> None:
    original = model()
    original.get_layer("scaled").set_weights([np.arange(4, dtype=np.float32)])
    wanted = original(X)
    original.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(X), wanted)
    assert loaded.get_layer("scaled").op is scale
    clone = keras.models.clone_model(original)
    assert clone.get_layer("scaled") is not original.get_layer("scaled")
    clone.set_weights(original.get_weights())
    np.testing.assert_array_equal(clone(X), wanted)
    original.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "exported"))
    np.testing.assert_array_equal(served.serve(tf.constant(X)), wanted)


def test_mixed_precision() -> None:
    mixed = model("mixed_bfloat16").get_layer("scaled")
    assert mixed.trainable_variables[0].dtype == "float32"
    y = mixed(X)
    assert y.dtype == tf.bfloat16
    wide = scale(X, np.ones(4, np.float32))
    np.testing.assert_allclose(tf.cast(y, tf.float32), wide, rtol=2e-2)


def test_several_inputs() -> None:
    layer = turn.as_layer(by=2.0)
    given, sizes = [X, 2 * X], {"by": 2.0}
    for one, other in zip(layer({"xs": given}), turn(given, **sizes), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match=r"KerasScale has no input 'bias'; it has \['x', 'gain'\]"):
        scale.as_layer({"bias": (4,)})
    with pytest.raises(TypeError, match="state the shape of the variable 'gain'"):
        scale.as_layer({"gain": {"initializer": "ones"}})
    with pytest.raises(TypeError, match="a layer has an input that is no variable"):
        mish.as_layer({"x": (4,)})
    with pytest.raises(ValueError, match=r"takes 1 inputs \(x\)"):
        scale.as_layer({"gain": (4,)}, name="two")([X, X])
    with pytest.raises(ValueError, match="a variable needs the size of axis -1 of 'x'"):
        scale.as_layer({"gain": [("x", -1)]})(keras.Input((None,)))
