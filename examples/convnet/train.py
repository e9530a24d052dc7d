"""Trains the network over composites and over tf.nn from the same start; saves and loads the first.

python -m examples.convnet.train [--steps N]
"""

from __future__ import annotations

import tempfile
from typing import Any

import click
import numpy as np
import tensorflow as tf

from examples.convnet.model import COMPOSITES, PLAIN, ConvNet, accuracy, train
from examples.digits.model import Digits


@click.command()
@click.option("--steps", default=120, show_default=True)
def main(steps: int) -> None:
    """Print the losses of both networks, and what the saved one answers."""
    digits = Digits.load()
    network = ConvNet(COMPOSITES)
    losses = train(network, digits, steps)
    plain = train(ConvNet(PLAIN), digits, steps)
    for i in range(0, steps, max(1, steps // 10)):
        print(f"step {i:4}: loss {losses[i]:.6f}, without composites {plain[i]:.6f}")
    print(f"the losses differ by at most {np.abs(np.subtract(losses, plain)).max():.1e}")
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(network, folder)
        loaded: Any = tf.saved_model.load(folder)
    right = accuracy(loaded.logits(tf.constant(digits.x_test)), digits.y_test)
    print(f"test accuracy {right:.4f}, after saving and loading")


if __name__ == "__main__":
    main()
