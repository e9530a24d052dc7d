"""`composite.accelerate` of Keras' recurrent layers: their loops are inside of regions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.acceleration import comparing
from tests.conftest import RunPython

LENGTH, WIDTH, UNITS = 6, 5, 7
_RTOL = 1e-5

layers = tf.keras.layers
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions are said to gain: they are called."""
    monkeypatch.setattr(comparing, "times", lambda functions, *_: [2e-3, 1e-3][: len(functions)])


def of(*stack: Any, length: int | None = LENGTH, mask: bool = False) -> Any:
    """A model of these layers, on numbers or, with a mask, on words."""
    if mask:
        inputs = tf.keras.Input((length,), dtype="int32")
        x = layers.Embedding(20, WIDTH, mask_zero=True)(inputs)
    else:
        x = inputs = tf.keras.Input((length, WIDTH))
    for layer in stack:
        x = layer(x)
    return tf.keras.Model(inputs, x)


def stacked() -> Any:
    three = [layers.LSTM(UNITS, return_sequences=True) for _ in range(3)]
    return of(*three, layers.Dense(3, activation="softmax"))


def of_shared_weights() -> Any:
    shared = layers.GRU(UNITS)
    inputs = tf.keras.Input((LENGTH, WIDTH))
    return tf.keras.Model(inputs, shared(inputs * 2.0) + shared(tf.keras.ops.flip(inputs, 1)))


def with_states() -> Any:
    inputs = tf.keras.Input((LENGTH, WIDTH))
    whole, *states = layers.LSTM(UNITS, return_sequences=True, return_state=True)(inputs)
    again = layers.LSTM(UNITS)(inputs, initial_state=states)
    return tf.keras.Model(inputs, [whole, *states, again])


# A model, and how many loops it has.
MODELS: dict[str, tuple[Callable[[], Any], int]] = {
    "tagger": (
        lambda: of(
            layers.LSTM(UNITS, return_sequences=True), layers.Dense(4, activation="softmax")
        ),
        1,
    ),
    "LSTM": (lambda: of(layers.LSTM(UNITS)), 1),
    "GRU": (lambda: of(layers.GRU(UNITS, return_sequences=True)), 1),
    "GRU, reset before": (lambda: of(layers.GRU(UNITS, reset_after=False)), 1),
    "SimpleRNN": (lambda: of(layers.SimpleRNN(UNITS)), 1),
    "bidirectional": (
        lambda: of(layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True))),
        2,
    ),
    "backwards": (lambda: of(layers.GRU(UNITS, go_backwards=True, return_sequences=True)), 1),
    "stacked": (stacked, 3),
    "states": (with_states, 2),
    "masked": (lambda: of(layers.LSTM(UNITS, return_sequences=True), mask=True), 1),
    "masked, zeros": (
        lambda: of(layers.GRU(UNITS, return_sequences=True, zero_output_for_mask=True), mask=True),
        1,
    ),
    "masked, bidirectional, of any length": (
        lambda: of(layers.Bidirectional(layers.GRU(UNITS)), mask=True, length=None),
        2,
    ),
    "unrolled": (lambda: of(layers.LSTM(UNITS, unroll=True)), 0),
    "of any length": (lambda: of(layers.LSTM(UNITS, return_sequences=True), length=None), 1),
    "shared weights": (of_shared_weights, 2),
}


def drawn(model: Any, seed: int = 0) -> Any:
    """The input of one call."""
    random = np.random.default_rng(seed)
    if model.input.dtype == "int32":
        return tf.constant(random.integers(0, 4, (3, LENGTH)), tf.int32)  # many zeros
    return tf.constant(random.standard_normal((3, LENGTH, WIDTH)), tf.float32)


@pytest.mark.parametrize("name", MODELS)
def test_a_layer(name: str) -> None:
    build, loops = MODELS[name]
    model = build()
    x = drawn(model)
    fast = composite.accelerate(model, x, rtol=_RTOL)
    report = fast.report
    inside = sum(region.ops["StatelessWhile"] * region.times for region in report.partition.regions)
    assert inside == loops
    assert not {"While", "StatelessWhile"} & report.partition.outside.keys()
    assert report.is_complete
    assert report.deviation.is_small
    assert report.is_gain
    assert [count.kernel for count in report.calls.values()] == [1] * len(report.calls)
    other = drawn(model, seed=1)
    for y, z in zip(tf.nest.flatten(fast(other)), tf.nest.flatten(model(other)), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


def test_weights_that_change() -> None:
    model = of(layers.LSTM(UNITS))
    x = drawn(model)
    fast = composite.accelerate(model, x, rtol=_RTOL)
    for weight in model.weights:
        weight.assign(weight * 0.5)
    np.testing.assert_allclose(fast(x), model(x), rtol=1e-4, atol=1e-5)


def test_a_loop_that_prints_stays_outside() -> None:
    class Printing(tf.keras.layers.SimpleRNNCell):
        def call(self, *args: Any, **kwargs: Any) -> Any:
            tf.print("a step", output_stream="file:///dev/null")
            return super().call(*args, **kwargs)

    model = of(layers.RNN(Printing(UNITS)))
    fast = composite.accelerate(model, drawn(model), rtol=_RTOL)
    assert fast.report.partition.outside["While"] == 1
    assert not any(region.ops["StatelessWhile"] for region in fast.report.partition.regions)


SERVE = """
import sys

import tensorflow as tf

import composite

model = composite.load_model(sys.argv[1], native_code=True)
serve = model.signatures["serving_default"]
((name, spec),) = serve.structured_input_signature[1].items()
serve(**{name: tf.ones(spec.shape, spec.dtype)})
print(sum(count.kernel for count in composite.stats().by_region.values()))
"""


def test_kernels_of_loops_lie_in_a_saved_model(tmp_path: Path, run_python: RunPython) -> None:
    model = of(layers.LSTM(UNITS))
    spec = tf.TensorSpec([3, LENGTH, WIDTH], tf.float32)
    model.export(str(tmp_path / "model"), input_signature=[spec], verbose=False)
    report = composite.accelerate(tmp_path / "model", out=tmp_path / "fast", rtol=_RTOL)
    assert report.kernels > 0
    served = run_python(SERVE, str(tmp_path / "fast"), env={"COMPOSITE_JIT": "0"})
    assert served.stdout.split() == ["1"]


def test_training() -> None:
    labels = tf.constant([0, 1, 2])

    def trained(regions: bool) -> list[Any]:
        tf.keras.utils.set_random_seed(0)
        model = of(layers.LSTM(UNITS), layers.Dense(3))
        model.compile(
            tf.keras.optimizers.SGD(0.1),
            tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        x = drawn(model)
        with composite.options(regions=regions):
            model.fit(x, labels, epochs=2, verbose=0)
            composite.wait()
            model.fit(x, labels, epochs=2, verbose=0)
            return [*model.get_weights(), model.predict(x, verbose=0)]

    before = composite.stats()
    found = trained(regions=True)
    assert (composite.stats() - before)["regions"] > 0
    for y, z in zip(found, trained(regions=False), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)
