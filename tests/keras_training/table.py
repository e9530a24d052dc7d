"""The layers of Keras as small models that can be trained, each with the inputs that it takes.

Each layer of `keras.layers` has a case here, or stands in LEFT_OUT with the reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

ROWS = 8

ROW, LINE, IMAGE, VOLUME, FRAMES = (8,), (6, 5), (6, 6, 3), (4, 4, 4, 2), (3, 5, 5, 2)
PICTURE = (16, 16, 3)

# Not layers of a model, or of other frameworks.
LEFT_OUT = {
    "Layer": "the base class",
    "Wrapper": "the base class of wrappers",
    "InputLayer": "in each model",
    "InputSpec": "no layer",
    "LSTMCell": "in the case of RNN",
    "GRUCell": "in the case of StackedRNNCells",
    "SimpleRNNCell": "in the case of StackedRNNCells",
    "FlaxLayer": "of JAX",
    "JaxLayer": "of JAX",
    "TorchModuleWrapper": "of PyTorch",
    "TFSMLayer": "a SavedModel, which has functions of its own",
    "MaxNumBoundingBoxes": "boxes, no tensor of a model",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer inside of a model: dense layers before it, where it takes floats, and behind it."""

    shape: tuple[int, ...]
    apply: Callable[[Any], Any]  # makes the layer and calls it
    given: str = "floats"  # or "pixels", "ints", "words"

    def model(self) -> Any:
        """A model of three numbers for each row."""
        dtypes = {"ints": "int32", "words": "string"}
        given = keras.Input(self.shape, dtype=dtypes.get(self.given, "float32"))
        x = given
        if self.given == "floats":
            x = layers.Dense(self.shape[-1], activation="tanh")(given)
        y = self.apply(x)
        y = layers.Flatten()(y) if len(y.shape) > 2 else y
        return keras.Model(given, layers.Dense(3)(y))

    def inputs(self, seed: int) -> Any:
        """Those of ROWS rows."""
        numbers = np.random.default_rng(seed)
        shape = (ROWS, *self.shape)
        if self.given == "pixels":
            return numbers.uniform(0, 255, shape).astype(np.float32)
        if self.given == "ints":
            return numbers.integers(1, 7, shape).astype(np.int32)
        if self.given == "words":
            return tf.constant(numbers.choice(["a b", "c", "d a c", "zz"], shape).tolist())
        return numbers.standard_normal(shape).astype(np.float32)


def _one(make: Callable[[], Any]) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return make()(x)

    return apply


def _itself(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda x: make()(x, x)


def _pair(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda x: make()([x, keras.ops.sin(x)])


def _plain(*args: tuple[Any, ...]) -> dict[str, Case]:
    """Cases of layers that are made without arguments or with those that follow the class."""
    cases = {}
    for shape, given, *made in args:
        for one in made:
            cls, keywords = one if isinstance(one, tuple) else (one, {})
            cases[cls.__name__] = Case(shape, _one(partial(cls, **keywords)), given)
    return cases


_KERNEL: dict[str, Any] = {"filters": 4, "kernel_size": 3}
_SAME = _KERNEL | {"padding": "same"}
_UP = {"filters": 3, "kernel_size": 2, "strides": 2}

CASES: dict[str, Case] = {
    **_plain(
        (ROW, "floats", (layers.Dense, {"units": 5}), layers.ELU, layers.LeakyReLU, layers.PReLU),
        (ROW, "floats", (layers.ReLU, {"max_value": 0.5}), layers.Softmax, layers.Identity),
        (ROW, "floats", (layers.Activation, {"activation": "gelu"}), layers.Normalization),
        (ROW, "floats", (layers.ActivityRegularization, {"l2": 0.1}), layers.BatchNormalization),
        (ROW, "floats", layers.LayerNormalization, layers.RMSNormalization),
        (ROW, "floats", layers.UnitNormalization, (layers.Rescaling, {"scale": 0.5})),
        (ROW, "floats", (layers.Dropout, {"rate": 0.3}), (layers.AlphaDropout, {"rate": 0.3})),
        (ROW, "floats", (layers.GaussianDropout, {"rate": 0.3})),
        (ROW, "floats", (layers.GaussianNoise, {"stddev": 0.3}), (layers.RepeatVector, {"n": 3})),
        (ROW, "floats", (layers.Reshape, {"target_shape": (2, 4)}), layers.Flatten),
        (ROW, "floats", (layers.Lambda, {"function": lambda x: x * 2.0 + 1.0})),
        (LINE, "floats", (layers.Conv1D, _KERNEL), (layers.Conv1DTranspose, _UP)),
        (LINE, "floats", (layers.DepthwiseConv1D, {"kernel_size": 3})),
        (LINE, "floats", (layers.SeparableConv1D, _SAME), layers.MaxPooling1D),
        (
            LINE,
            "floats",
            (layers.AveragePooling1D, {"pool_size": 2}),
            layers.GlobalAveragePooling1D,
        ),
        (LINE, "floats", layers.GlobalMaxPooling1D, layers.UpSampling1D, layers.ZeroPadding1D),
        (LINE, "floats", layers.Cropping1D, (layers.Permute, {"dims": (2, 1)}), layers.Masking),
        (LINE, "floats", (layers.SpatialDropout1D, {"rate": 0.3})),
        (LINE, "floats", (layers.LSTM, {"units": 4}), (layers.GRU, {"units": 4})),
        (LINE, "floats", (layers.SimpleRNN, {"units": 4, "return_sequences": True})),
        (LINE, "floats", (layers.AdaptiveAveragePooling1D, {"output_size": 4})),
        (LINE, "floats", (layers.AdaptiveMaxPooling1D, {"output_size": 4})),
        (LINE, "floats", (layers.EinsumDense, {"equation": "abc,cd->abd", "output_shape": (6, 4)})),
        (IMAGE, "floats", (layers.Conv2D, _KERNEL), (layers.Conv2DTranspose, _UP)),
        (IMAGE, "floats", (layers.DepthwiseConv2D, {"kernel_size": 3})),
        (IMAGE, "floats", (layers.SeparableConv2D, _SAME), layers.MaxPooling2D),
        (
            IMAGE,
            "floats",
            (layers.AveragePooling2D, {"pool_size": 2}),
            layers.GlobalAveragePooling2D,
        ),
        (IMAGE, "floats", layers.GlobalMaxPooling2D, layers.UpSampling2D, layers.ZeroPadding2D),
        (IMAGE, "floats", layers.Cropping2D, (layers.SpatialDropout2D, {"rate": 0.3})),
        (IMAGE, "floats", (layers.GroupNormalization, {"groups": 3})),
        (IMAGE, "floats", (layers.AdaptiveAveragePooling2D, {"output_size": 4})),
        (IMAGE, "floats", (layers.AdaptiveMaxPooling2D, {"output_size": 4})),
        (IMAGE, "floats", (layers.Resizing, {"height": 4, "width": 5})),
        (IMAGE, "floats", (layers.CenterCrop, {"height": 4, "width": 4})),
        (IMAGE, "floats", (layers.ConvLSTM1D, {"filters": 2, "kernel_size": 3})),
        (VOLUME, "floats", (layers.Conv3D, {"filters": 3, "kernel_size": 2})),
        (VOLUME, "floats", (layers.Conv3DTranspose, _UP), layers.MaxPooling3D),
        (
            VOLUME,
            "floats",
            (layers.AveragePooling3D, {"pool_size": 2}),
            layers.GlobalAveragePooling3D,
        ),
        (VOLUME, "floats", layers.GlobalMaxPooling3D, layers.UpSampling3D, layers.ZeroPadding3D),
        (VOLUME, "floats", layers.Cropping3D, (layers.SpatialDropout3D, {"rate": 0.3})),
        (VOLUME, "floats", (layers.AdaptiveAveragePooling3D, {"output_size": 2})),
        (VOLUME, "floats", (layers.AdaptiveMaxPooling3D, {"output_size": 2})),
        (FRAMES, "floats", (layers.ConvLSTM2D, {"filters": 2, "kernel_size": 3})),
        ((2, 4, 4, 4, 2), "floats", (layers.ConvLSTM3D, {"filters": 2, "kernel_size": 2})),
        (ROW, "ints", (layers.Embedding, {"input_dim": 9, "output_dim": 4})),
        (ROW, "ints", (layers.CategoryEncoding, {"num_tokens": 9})),
        (
            ROW,
            "ints",
            (layers.IntegerLookup, {"vocabulary": [1, 2, 3], "output_mode": "multi_hot"}),
        ),
        (ROW, "floats", (layers.Discretization, {"bin_boundaries": [-0.5, 0.0, 0.5]})),
        ((64, 1), "floats", (layers.STFTSpectrogram, {"frame_length": 16, "frame_step": 8})),
        ((64,), "floats", (layers.MelSpectrogram, {"fft_length": 16, "num_mel_bins": 8})),
        (PICTURE, "pixels", layers.AugMix, layers.AutoContrast, layers.CutMix, layers.Equalization),
        (PICTURE, "pixels", layers.ContrastLimitedAdaptiveHistogramEqualization, layers.MixUp),
        (PICTURE, "pixels", layers.RandAugment, (layers.RandomBrightness, {"factor": 0.2})),
        (PICTURE, "pixels", (layers.RandomColorDegeneration, {"factor": 0.5})),
        (PICTURE, "pixels", (layers.RandomColorJitter, {"brightness_factor": 0.2})),
        (PICTURE, "pixels", (layers.RandomContrast, {"factor": 0.2})),
        (PICTURE, "pixels", layers.RandomElasticTransform, layers.RandomErasing, layers.RandomFlip),
        (PICTURE, "pixels", layers.RandomGaussianBlur, layers.RandomGrayscale, layers.RandomInvert),
        (PICTURE, "pixels", (layers.RandomHue, {"factor": 0.2}), layers.RandomPerspective),
        (PICTURE, "pixels", (layers.RandomPosterization, {"factor": 4})),
        (PICTURE, "pixels", (layers.RandomRotation, {"factor": 0.2})),
        (PICTURE, "pixels", (layers.RandomSaturation, {"factor": 0.2})),
        (PICTURE, "pixels", (layers.RandomSharpness, {"factor": 0.2})),
        (PICTURE, "pixels", (layers.RandomShear, {"x_factor": 0.2})),
        (
            PICTURE,
            "pixels",
            (layers.RandomTranslation, {"height_factor": 0.2, "width_factor": 0}),
        ),
        (PICTURE, "pixels", (layers.RandomZoom, {"height_factor": 0.2}), layers.Solarization),
    ),
    **{
        cls.__name__: Case(ROW, _pair(cls))
        for cls in (
            layers.Add,
            layers.Average,
            layers.Concatenate,
            layers.Maximum,
            layers.Minimum,
            layers.Multiply,
            layers.Subtract,
        )
    },
    "Dot": Case(ROW, _pair(lambda: layers.Dot(axes=1, normalize=True))),
    "Attention": Case(LINE, _pair(lambda: layers.Attention(use_scale=True))),
    "AdditiveAttention": Case(LINE, _pair(layers.AdditiveAttention)),
    "MultiHeadAttention": Case(LINE, _itself(lambda: layers.MultiHeadAttention(2, 4))),
    "GroupedQueryAttention": Case(LINE, _itself(lambda: layers.GroupQueryAttention(4, 4, 2))),
    "Bidirectional": Case(LINE, _one(lambda: layers.Bidirectional(layers.GRU(4)))),
    "RNN": Case(LINE, _one(lambda: layers.RNN(layers.LSTMCell(4)))),
    "StackedRNNCells": Case(
        LINE,
        _one(lambda: layers.RNN([layers.GRUCell(4), layers.SimpleRNNCell(3)])),
    ),
    "TimeDistributed": Case(LINE, _one(lambda: layers.TimeDistributed(layers.Dense(4)))),
    "SpectralNormalization": Case(ROW, _one(lambda: layers.SpectralNormalization(layers.Dense(4)))),
    "Pipeline": Case(
        IMAGE,
        _one(lambda: layers.Pipeline([layers.RandomFlip(), layers.Rescaling(0.5)])),
        "pixels",
    ),
    # Its size is known in a training alone.
    "RandomCrop": Case(
        PICTURE, lambda x: layers.GlobalMaxPooling2D()(layers.RandomCrop(9, 9)(x)), "pixels"
    ),
    "ReversibleEmbedding": Case(
        ROW, lambda x: (e := layers.ReversibleEmbedding(9, 4))(e(x), reverse=True), "ints"
    ),
    "Hashing": Case(ROW, lambda x: layers.Embedding(5, 3)(layers.Hashing(num_bins=5)(x)), "words"),
    "HashedCrossing": Case(
        (1,), lambda x: layers.HashedCrossing(num_bins=5, output_mode="one_hot")((x, x)), "words"
    ),
    "StringLookup": Case(
        ROW,
        lambda x: layers.Embedding(5, 3)(layers.StringLookup(vocabulary=["a b", "c"])(x)),
        "words",
    ),
    "TextVectorization": Case(
        (1,),
        lambda x: layers.Embedding(9, 3)(
            layers.TextVectorization(vocabulary=["a", "b", "c"], output_sequence_length=4)(x)
        ),
        "words",
    ),
}
