"""Models that others wrote, with random weights: what `composite.accelerate` is given.

Those of keras.applications, and what keras.layers make: an encoder, a tagger, and a ranking model
of a wide and a deep part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import keras

WORDS = 1000


def _application(name: str, side: int) -> Callable[[], keras.Model]:
    def made() -> keras.Model:
        import keras

        build = getattr(keras.applications, name)
        # Logits: with drawn weights all classes are as probable, whatever goes wrong before.
        return build(
            weights=None, input_shape=(side, side, 3), classes=100, classifier_activation=None
        )

    return made


def encoder(layers: int, width: int, heads: int, length: int) -> keras.Model:
    """A BERT-like encoder: [batch, length] words -> [batch, length, width]."""
    import keras
    from keras import layers as of

    words = keras.Input((length,), dtype="int32")
    x = of.LayerNormalization()(of.Embedding(WORDS, width)(words))
    for _ in range(layers):
        x = of.LayerNormalization()(x + of.MultiHeadAttention(heads, width // heads)(x, x))
        hidden = of.Dense(4 * width, activation="gelu")(x)
        x = of.LayerNormalization()(x + of.Dense(width)(hidden))
    return keras.Model(words, x)


def tagger(width: int, length: int) -> keras.Model:
    """An LSTM over words, and ten classes of each: [batch, length] -> [batch, length, 10]."""
    import keras
    from keras import layers as of

    words = keras.Input((length,), dtype="int32")
    x = of.LSTM(width, return_sequences=True)(of.Embedding(WORDS, width)(words))
    return keras.Model(words, of.Dense(10, activation="softmax")(x))


def wide_and_deep(columns: int, numbers: int) -> keras.Model:
    """A ranking model: [batch, columns] categories and [batch, numbers] -> [batch, 1]."""
    import keras
    from keras import layers as of

    categories = keras.Input((columns,), dtype="int32")
    given = keras.Input((numbers,))
    wide = of.Flatten()(of.Embedding(WORDS, 1)(categories))
    x = of.Concatenate()([of.Flatten()(of.Embedding(WORDS, 16)(categories)), given])
    for units in (256, 128, 64):
        x = of.Dense(units, activation="relu")(x)
    return keras.Model(
        [categories, given],
        of.Dense(1, activation="sigmoid")(of.Add()([of.Dense(1)(x), of.Dense(1)(wide)])),
    )


MODELS: Mapping[str, Callable[[], keras.Model]] = {
    "MobileNetV2": _application("MobileNetV2", 96),
    "ResNet50": _application("ResNet50", 96),
    "EfficientNetB0": _application("EfficientNetB0", 96),
    "encoder": lambda: encoder(layers=4, width=256, heads=4, length=64),
    "tagger": lambda: tagger(width=128, length=32),
    "wide and deep": lambda: wide_and_deep(columns=26, numbers=13),
}
"""How each is built."""


def inputs(model: keras.Model, batch: int) -> list[Any]:
    """The inputs of one call, drawn: words where they are integers."""
    import tensorflow as tf

    random = np.random.default_rng(0)
    made = []
    for one in model.inputs:
        shape = (batch, *one.shape[1:])
        is_word = "int" in str(one.dtype)
        drawn = random.integers(0, WORDS, shape) if is_word else random.standard_normal(shape)
        made.append(tf.constant(drawn, one.dtype))
    return made
