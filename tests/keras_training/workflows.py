"""What users do with models besides `fit`: one function each, which gives what it computed.

Each is a training as compare.py takes it: it is given how far away its numbers are to be, and
builds its models anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tests.keras_training.compare import Arrays, Run
from tests.keras_training.matrix import move, moved

_SEED = 5
_ROWS, _WIDTH, _LENGTH = 12, 6, 5


def _x(away: float, *shape: int) -> Any:
    numbers = np.random.default_rng(_SEED).standard_normal(shape or (_ROWS, _WIDTH))
    return moved(numbers.astype(np.float32), _SEED, away)


def _y(*shape: int) -> Any:
    return np.random.default_rng(_SEED + 1).standard_normal(shape or (_ROWS, 3)).astype(np.float32)


def _mlp(away: float, *, norm: bool = True, **keywords: Any) -> Any:
    keras.utils.set_random_seed(_SEED)
    hidden = [layers.Dense(8, activation="tanh", **keywords)]
    hidden += [layers.BatchNormalization(**keywords)] if norm else []
    model = keras.Sequential([keras.Input((_WIDTH,)), *hidden, layers.Dense(3, **keywords)])
    move(model, _SEED, away)
    return model


def _results(model: Any, losses: Any, x: Any) -> Arrays:
    weights = {f"weight {i}": v.numpy() for i, v in enumerate(model.weights)}
    predicted = {
        f"prediction {i}": p for i, p in enumerate(tf.nest.flatten(model.predict(x, verbose=0)))
    }
    return {"the losses": losses, **predicted, **weights}


def _fit(model: Any, x: Any, y: Any, *, batch_size: int = 4, **keywords: Any) -> list[float]:
    fitted = model.fit(x, y, batch_size=batch_size, epochs=2, shuffle=False, verbose=0, **keywords)
    return list(fitted.history["loss"])


def _fitted(optimizer: Any, away: float, /, *, norm: bool = True, **compiled: Any) -> Arrays:
    model = _mlp(away, norm=norm)
    model.compile(optimizer, "mse", jit_compile=False, **compiled)
    x = _x(away)
    return _results(model, _fit(model, x, _y()), x)


def steps_per_execution(away: float) -> Arrays:
    return _fitted(keras.optimizers.Adam(0.01), away, steps_per_execution=3)


def moving_average_of_weights(away: float) -> Arrays:
    optimizer = keras.optimizers.Adam(
        0.01, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2
    )
    return _fitted(optimizer, away)


def gradient_accumulation(away: float) -> Arrays:
    return _fitted(keras.optimizers.Adam(0.01, gradient_accumulation_steps=2), away)


def mixed_precision(away: float) -> Arrays:
    # Half has 11 bits: an ulp of it moves the rest.
    model = _mlp(away and 1e-3, dtype="mixed_float16")
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.05), dynamic_growth_steps=2
    )
    model.compile(optimizer, "mse", jit_compile=False)
    x = _x(away and 1e-3)
    return _results(model, _fit(model, x, _y()), x)


def two_optimizers(away: float) -> Arrays:
    model = _mlp(away)
    first, last = keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.05, momentum=0.9)
    left, right = model.trainable_variables[:4], model.trainable_variables[4:]
    first.build(left)
    last.build(right)

    @tf.function(autograph=False)
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, left + right)
        first.apply_gradients(zip(gradients[: len(left)], left, strict=True))
        last.apply_gradients(zip(gradients[len(left) :], right, strict=True))
        return loss

    x, y = _x(away), _y()
    return _results(model, [float(step(tf.constant(x), tf.constant(y))) for _ in range(4)], x)


def target_network(away: float) -> Arrays:
    online, target = _mlp(away, norm=False), _mlp(away, norm=False)
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(online.trainable_variables)

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        wanted = tf.stop_gradient(0.9 * target(x[::-1]) + tf.sin(x[:, :3]))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(online(x) - wanted))
        weights = online.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        for old, new in zip(target.trainable_variables, weights, strict=True):
            old.assign(0.9 * old + 0.1 * new)
        return loss

    x = _x(away)
    losses = [float(step(tf.constant(x))) for _ in range(4)]
    of_target = {f"target {i}": v.numpy() for i, v in enumerate(target.weights)}
    return {**_results(online, losses, x), **of_target}


def frozen_then_tuned(away: float) -> Arrays:
    model = _mlp(away)
    x, y = _x(away), _y()
    losses = []
    for trainable in (False, True):
        for layer in model.layers[:2]:
            layer.trainable = trainable
        model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
        losses += _fit(model, x, y)
    return _results(model, losses, x)


def weights_set_between_calls(away: float) -> Arrays:
    model = _mlp(away)
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
    x, y = _x(away), _y()
    start = model.get_weights()
    losses = _fit(model, x, y)
    first = model.predict(x, verbose=0)
    model.set_weights(start)
    again = model.predict(x, verbose=0)
    losses += _fit(model, x, y)
    return {**_results(model, losses, x), "the first": first, "set back": again}


def checkpoint_and_resume(away: float) -> Arrays:
    x, y = _x(away), _y()
    with tempfile.TemporaryDirectory() as folder:
        model = _mlp(away)
        model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
        losses = _fit(model, x, y)
        kept = str(Path(folder) / "model.keras")
        model.save(kept)
        losses += _fit(model, x, y)
        resumed = keras.saving.load_model(kept)
        resumed.compile(resumed.optimizer, "mse", jit_compile=False)
        losses += _fit(resumed, x, y)
        checkpoint = tf.train.Checkpoint(model=model)
        path = checkpoint.write(str(Path(folder) / "weights"))
        losses += _fit(model, x, y)
        checkpoint.read(path)
        losses += _fit(model, x, y)
    return {**_results(model, losses, x), "resumed": resumed.predict(x, verbose=0)}


def stateful_rnn(away: float) -> Arrays:
    keras.utils.set_random_seed(_SEED)
    given = keras.Input((_LENGTH, 4), batch_size=4)
    y = layers.LSTM(5, stateful=True, return_sequences=True)(given)
    model = keras.Model(given, layers.Dense(3)(layers.GRU(4, stateful=True)(y)))
    move(model, _SEED, away)
    model.compile(keras.optimizers.RMSprop(0.01), "mse", jit_compile=False)
    x = _x(away, _ROWS, _LENGTH, 4)
    losses = _fit(model, x, _y())
    predicted = model.predict(x, batch_size=4, verbose=0)
    weights = {f"weight {i}": v.numpy() for i, v in enumerate(model.weights)}
    return {"the losses": losses, "the prediction": predicted, **weights}


def masks(away: float) -> Arrays:
    keras.utils.set_random_seed(_SEED)
    given = keras.Input((_LENGTH,), dtype="int32")
    y = layers.Embedding(9, 4, mask_zero=True)(given)
    y = layers.LSTM(5, return_sequences=True)(y)
    y = layers.MultiHeadAttention(2, 3)(y, y)
    y = layers.Bidirectional(layers.GRU(4))(y)
    model = keras.Model(given, layers.Dense(3)(y))
    move(model, _SEED, away)
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
    x = np.random.default_rng(_SEED).integers(0, 9, (_ROWS, _LENGTH)).astype(np.int32)
    x[:, -2:] = 0
    return _results(model, _fit(model, x, _y()), x)


class Tied(layers.Layer):
    """A dense layer there, and back by the same kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.there = layers.Dense(4, activation="tanh")

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(self.there(x), keras.ops.transpose(self.there.kernel))


def tied_weights(away: float) -> Arrays:
    keras.utils.set_random_seed(_SEED)
    given = keras.Input((_WIDTH,))
    shared = layers.Dense(_WIDTH, activation="gelu")
    model = keras.Model(given, layers.Dense(3)(shared(Tied()(shared(given)))))
    move(model, _SEED, away)
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
    x = _x(away)
    return _results(model, _fit(model, x, _y()), x)


def sample_and_class_weights(away: float) -> Arrays:
    model = _mlp(away)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, weighted_metrics=["acc"], jit_compile=False)
    x, classes = _x(away), np.arange(_ROWS) % 3
    losses = _fit(model, x, classes, sample_weight=np.linspace(0.5, 2.0, _ROWS).astype(np.float32))
    losses += _fit(model, x, classes, class_weight={0: 0.5, 1: 1.0, 2: 3.0})
    return _results(model, losses, x)


def several_outputs(away: float) -> Arrays:
    keras.utils.set_random_seed(_SEED)
    given = keras.Input((_WIDTH,))
    y = layers.LayerNormalization()(layers.Dense(8, activation="relu")(given))
    outputs = [layers.Dense(3, name="a")(y), layers.Dense(1, activation="sigmoid", name="b")(y)]
    model = keras.Model(given, outputs)
    move(model, _SEED, away)
    losses = {"a": "mse", "b": "binary_crossentropy"}
    optimizer = keras.optimizers.Nadam(0.01)
    model.compile(optimizer, losses, loss_weights={"a": 0.3, "b": 1.0}, jit_compile=False)
    x = _x(away)
    truths = (np.arange(_ROWS) % 2).astype(np.float32)[:, None]
    return _results(model, _fit(model, x, {"a": _y(), "b": truths}), x)


class Penalized(keras.Model):
    """Whose gradient by its inputs is to have a length of 1."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def call(self, x: Any, training: bool = False) -> Any:
        return self.inner(x, training=training)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                predicted = self.inner(x, training=True)
            slopes = inner.gradient(predicted, x)
            lengths = tf.sqrt(tf.reduce_sum(tf.square(slopes), -1) + 1e-6)
            loss = tf.reduce_mean(tf.square(predicted - y)) + tf.reduce_mean(tf.square(lengths - 1))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def gradient_penalty(away: float) -> Arrays:
    model = Penalized(_mlp(away, norm=False))
    model.compile(keras.optimizers.Adam(0.01), jit_compile=False)
    x = _x(away)
    return _results(model, _fit(model, x, _y()), x)


def batches_of_varying_sizes(away: float) -> Arrays:
    model = _mlp(away)
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
    x, y = _x(away), _y()
    losses = [float(model.train_on_batch(x[:size], y[:size])) for size in (4, 7, 1, 12, 4, 3, 7, 2)]
    losses += [float(model.test_on_batch(x[:size], y[:size])) for size in (5, 1)]
    return _results(model, losses, x)


def replicas(away: float) -> Arrays:
    """Two replicas, in a process that has two CPUs: see two_cpus."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = _mlp(away)
        model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
    x = _x(away)
    losses = _fit(model, x, _y(), batch_size=6)
    weights = {f"weight {i}": v.numpy() for i, v in enumerate(model.weights)}
    return {"the losses": losses, **weights}


def two_cpus() -> None:
    """Has this process have two logical CPUs, before it runs anything."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


WORKFLOWS: dict[str, Run] = {
    train.__name__: train
    for train in (
        steps_per_execution,
        moving_average_of_weights,
        gradient_accumulation,
        mixed_precision,
        two_optimizers,
        target_network,
        frozen_then_tuned,
        weights_set_between_calls,
        checkpoint_and_resume,
        stateful_rnn,
        masks,
        tied_weights,
        sample_and_class_weights,
        several_outputs,
        gradient_penalty,
        batches_of_varying_sizes,
    )
}


def makers() -> Iterator[tuple[str, Callable[[], Run]]]:
    """Names, and what makes the trainings."""
    for name, run in WORKFLOWS.items():
        yield name, partial(_same, run)


def _same(run: Run) -> Run:
    return run
