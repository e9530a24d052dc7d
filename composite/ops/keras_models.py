"""What Keras models say of themselves.

Not for layers of ops: see `keras_layer`.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def inputs_of(model: Any) -> Any:
    """The symbolic inputs of a Keras model, in the structure that a call takes; None without any.

    A model that is not built has none, nor has one of layers that are called by a method of its
    author's and that was never called with symbolic inputs.
    """
    if not model.built:
        return None
    if isinstance(model, tf.keras.Sequential):  # whose `input` is that of its first call
        given = getattr(model, "inputs", None)
        return given[0] if given is not None and len(given) == 1 else given
    return getattr(model, "input", None)
