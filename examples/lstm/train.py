"""Trains an LSTM on handwritten digits, read row by row, beside Keras' own layer.

python -m examples.lstm.train [--epochs N]
"""

from __future__ import annotations

import time
from typing import Any

import click
import keras
import numpy as np

from examples.digits.model import Digits
from examples.lstm import layer

BATCH = 64


def rows(pixels: Any) -> Any:
    """[n, 64] pixels -> [n, 8, 8]: a digit is a sequence of its rows."""
    return pixels.reshape(-1, 8, 8)


def classifier(lstm: Any, steps: int, units: int = 64) -> keras.Model:
    """8 rows of 8 pixels -> an LSTM from both ends -> 10 logits; `steps` are those of training."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((8, 8)),
            keras.layers.Bidirectional(lstm(units, return_sequences=True)),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(1e-2, steps)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    return model


def train(lstm: Any, digits: Digits, epochs: int) -> tuple[list[float], float]:
    """Train a classifier; returns the loss of each epoch, and the accuracy on other digits."""
    model = classifier(lstm, steps=epochs * -(-len(digits.x_train) // BATCH))
    history = model.fit(
        rows(digits.x_train), digits.y_train, batch_size=BATCH, epochs=epochs, verbose=0
    )
    _, accuracy = model.evaluate(rows(digits.x_test), digits.y_test, verbose=0)
    return history.history["loss"], float(accuracy)


@click.command()
@click.option("--epochs", default=10, show_default=True)
def main(epochs: int) -> None:
    """Print the losses of both, and how often the first is right."""
    digits = Digits.load()
    losses: list[list[float]] = []
    accuracies: list[float] = []
    for lstm in (layer.LSTM, keras.layers.LSTM):
        start = time.perf_counter()
        loss, accuracy = train(lstm, digits, epochs)
        losses.append(loss)
        accuracies.append(accuracy)
        print(f"{lstm.__module__}: {time.perf_counter() - start:.1f} s, accuracy {accuracy:.4f}")
    for epoch, (ours, theirs) in enumerate(zip(*losses, strict=True)):
        print(f"epoch {epoch:3}: loss {ours:.6f}, Keras' own {theirs:.6f}")
    print(f"the losses differ by at most {np.abs(np.subtract(losses[0], losses[1])).max():.1e}")
    print(f"accuracy {accuracies[0]:.4f} on digits that are new to it")


if __name__ == "__main__":
    main()
