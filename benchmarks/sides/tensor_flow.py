"""TensorFlow without us: eager, as a tf.function, and compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from benchmarks.sides import tensorflow_recurrent as recurrent
from benchmarks.sides.side import Settings, Way
from benchmarks.sides.tensorflow_layers import PLAIN, eager, function
from benchmarks.works.work import Program

_LOOPS = ("LSTM", "GRU")


class TensorFlow:
    """TensorFlow's three ways of running its own ops; of a recurrent layer, its own layers too."""

    def versions(self) -> dict[str, str]:
        """Tensorflow."""
        return {"tensorflow": tf.__version__}

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column, the best of them."""
        return {"TensorFlow": _loops(program) if program.kind in _LOOPS else _ops(program)}


def _ops(program: Program) -> Settings:
    layer = PLAIN[program.kind]
    return {
        "eager": lambda: eager(program, layer),
        "tf.function": lambda: function(program, layer),
        "XLA": lambda: function(program, layer, jit_compile=True),
    }


def _loops(program: Program) -> Settings:
    """Without eager ones, which take seconds for a stack."""
    layer, from_keras = PLAIN[program.kind], recurrent.keras(program.kind)
    builds: dict[str, Callable[[], Way]] = {
        "tf.function": lambda: function(program, layer),
        "XLA": lambda: function(program, layer, jit_compile=True),
        "Keras, tf.function": lambda: function(program, from_keras),
        "Keras, XLA": lambda: function(program, from_keras, jit_compile=True),
    }
    if program.kind == "LSTM":
        whole = recurrent.for_block(program)
        builds["BlockLSTM"] = lambda: function(whole, recurrent.block_lstm)
    return builds


def side() -> TensorFlow:
    """The side of this module."""
    return TensorFlow()
