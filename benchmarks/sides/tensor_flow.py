"""TensorFlow without us: eager, as a tf.function, and compiled by XLA."""

from __future__ import annotations

import tensorflow as tf

from benchmarks.sides.side import Settings
from benchmarks.sides.tensorflow_layers import PLAIN, eager, function
from benchmarks.works.work import Program


class TensorFlow:
    """TensorFlow's three ways of running its own ops."""

    def versions(self) -> dict[str, str]:
        """Tensorflow."""
        return {"tensorflow": tf.__version__}

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column, the best of the three."""
        layer = PLAIN[program.kind]
        builds: Settings = {
            "eager": lambda: eager(program, layer),
            "tf.function": lambda: function(program, layer),
            "XLA": lambda: function(program, layer, jit_compile=True),
        }
        return {"TensorFlow": builds}


def side() -> TensorFlow:
    """The side of this module."""
    return TensorFlow()
