"""Models that others wrote, with random weights: what `composite.accelerate` is given.

Those of keras.applications, backbones of keras-hub in small sizes, and what keras.layers make: two
ranking models, a stack of dense layers, a tagger, and an encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from composite.ops.keras_models import inputs_of

if TYPE_CHECKING:
    import keras

WORDS = 1000
LENGTH = 64
"""How long texts are where a model takes any length."""

# What integers of other inputs than words lie between, by the names that keras-hub gives these.
_LIMITS = {"segment_ids": (0, 2), "padding_mask": (1, 2)}


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


def dlrm(columns: int, numbers: int, width: int) -> keras.Model:
    """A ranking model: [batch, columns] categories and [batch, numbers] -> [batch, 1].

    Products of all pairs of embeddings, one of which dense layers make of the numbers, go into
    dense layers, as in facebookresearch/dlrm.
    """
    import keras
    from keras import layers as of

    categories = keras.Input((columns,), dtype="int32")
    given = keras.Input((numbers,))
    bottom = given
    for units in (512, 256, width):
        bottom = of.Dense(units, activation="relu")(bottom)
    embedded = of.Embedding(WORDS, width)(categories)
    vectors = of.Concatenate(axis=1)([of.Reshape((1, width))(bottom), embedded])
    products = of.Reshape(((columns + 1) ** 2,))(of.Dot(axes=2)([vectors, vectors]))
    rows, others = np.tril_indices(columns + 1, -1)  # each pair once
    pairs = keras.ops.take(products, rows * (columns + 1) + others, axis=1)
    x = of.Concatenate()([bottom, pairs])
    for units in (512, 256):
        x = of.Dense(units, activation="relu")(x)
    return keras.Model([categories, given], of.Dense(1, activation="sigmoid")(x))


def dense_stack(layers: int, width: int) -> keras.Model:
    """Dense layers with a ReLU: [batch, width] -> [batch, width]."""
    import keras

    x = given = keras.Input((width,))
    for _ in range(layers):
        x = keras.layers.Dense(width, activation="relu")(x)
    return keras.Model(given, x)


def _of_hub(name: str, **sizes: Any) -> Callable[[], keras.Model]:
    """A backbone of keras-hub: four layers of 256 with four heads, unless `sizes` says else."""

    def made() -> keras.Model:
        try:
            from keras_hub import models
        except ImportError as error:
            told = f"keras-hub is not installed ({error}): `make bench` does so"
            raise ImportError(told) from None
        small = {"num_layers": 4, "num_heads": 4, "hidden_dim": 256}
        return getattr(models, name)(**small | sizes)

    return made


_OF_TEXTS = {"vocabulary_size": WORDS, "intermediate_dim": 1024, "max_sequence_length": LENGTH}

MODELS: Mapping[str, Callable[[], keras.Model]] = {
    "wide and deep": lambda: wide_and_deep(columns=26, numbers=13),
    "DLRM": lambda: dlrm(columns=26, numbers=13, width=64),
    "dense stack": lambda: dense_stack(layers=16, width=512),
    "tagger": lambda: tagger(width=128, length=32),
    "encoder": lambda: encoder(layers=4, width=256, heads=4, length=64),
    "BERT": _of_hub("BertBackbone", **_OF_TEXTS),
    "GPT-2": _of_hub("GPT2Backbone", **_OF_TEXTS),
    "ViT": _of_hub("ViTBackbone", image_shape=(96, 96, 3), patch_size=16, mlp_dim=1024),
    "MobileNetV2": _application("MobileNetV2", 96),
    "ResNet50": _application("ResNet50", 96),
    "EfficientNetB0": _application("EfficientNetB0", 96),
}
"""How each is built."""

ALSO_READY: Mapping[str, Callable[[], keras.Model]] = {
    "BERT of 12 layers": _of_hub("BertBackbone", num_layers=12, **_OF_TEXTS),
    "DenseNet121": _application("DenseNet121", 96),
}
"""Further ones, of which it is measured how long they take to be accelerated."""


def inputs(model: keras.Model, batch: int) -> Any:
    """The inputs of one call, drawn, in the structure that it takes: words where integers."""
    import keras
    import tensorflow as tf

    random = np.random.default_rng(0)

    def draw(one: Any) -> Any:
        shape = (batch, *(LENGTH if dim is None else dim for dim in one.shape[1:]))
        is_word = "int" in str(one.dtype)
        limits = _LIMITS.get(one.name, (0, WORDS))
        drawn = random.integers(*limits, shape) if is_word else random.standard_normal(shape)
        return tf.constant(drawn, one.dtype)

    return keras.tree.map_structure(draw, inputs_of(model))
