"""TensorFlow without us: eager, as a tf.function, and compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from benchmarks.sides.side import Settings, Way
from benchmarks.sides.tensorflow_layers import PLAIN, eager, function
from benchmarks.sides.tensorflow_recurrent import keras
from benchmarks.works.work import Program


class TensorFlow:
    """TensorFlow's three ways of running its own ops, and Keras's layers where it has a loop."""

    def versions(self) -> dict[str, str]:
        """Tensorflow."""
        return {"tensorflow": tf.__version__}

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column, the best of them."""
        layer = PLAIN[program.kind]
        builds: dict[str, Callable[[], Way]] = {
            "eager": lambda: eager(program, layer),
            "tf.function": lambda: function(program, layer),
            "XLA": lambda: function(program, layer, jit_compile=True),
        }
        if program.kind in ("LSTM", "GRU"):
            made = keras(program.kind)
            builds |= {
                "Keras, tf.function": lambda: function(program, made),
                "Keras, XLA": lambda: function(program, made, jit_compile=True),
            }
        return {"TensorFlow": builds}


def side() -> TensorFlow:
    """The side of this module."""
    return TensorFlow()
