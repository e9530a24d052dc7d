"""Each op of a layer of Keras has a lowering: models of these are whole regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from keras import layers

from composite.compiler.tvm import table

LINE, IMAGE, VOLUME, ROW = (8, 6), (8, 8, 4), (6, 6, 6, 4), (8,)
# What gives values and keeps state is outside of kernels.
GIVEN = {"Placeholder", "ReadVariableOp", "ResourceGather", "NoOp"}

LAYERS: dict[str, tuple[tuple[int, ...], Callable[[], Any]]] = {
    "dense": (ROW, lambda: layers.Dense(4)),
    "einsum dense": (LINE, lambda: layers.EinsumDense("abc,cd->abd", (None, 4))),
    "convolution of lines": (LINE, lambda: layers.Conv1D(4, 3)),
    "dilated, of lines": (LINE, lambda: layers.Conv1D(4, 3, padding="causal", dilation_rate=2)),
    "convolution": (IMAGE, lambda: layers.Conv2D(4, 3)),
    "dilated": (IMAGE, lambda: layers.Conv2D(4, 3, dilation_rate=2)),
    "in groups": (IMAGE, lambda: layers.Conv2D(4, 3, groups=2)),
    "in groups, of lines": (LINE, lambda: layers.Conv1D(6, 3, groups=2)),
    "transposed, of lines": (LINE, lambda: layers.Conv1DTranspose(4, 3, strides=2)),
    "transposed": (IMAGE, lambda: layers.Conv2DTranspose(4, 3, strides=2, padding="same")),
    "by channel, of lines": (LINE, lambda: layers.DepthwiseConv1D(3)),
    "by channel": (IMAGE, lambda: layers.DepthwiseConv2D(3)),
    "by channel, dilated": (IMAGE, lambda: layers.DepthwiseConv2D(3, dilation_rate=2)),
    "separable, of lines": (LINE, lambda: layers.SeparableConv1D(4, 3)),
    "separable": (IMAGE, lambda: layers.SeparableConv2D(4, 3)),
    "largest, of lines": (LINE, lambda: layers.MaxPooling1D(2)),
    "largest": (IMAGE, lambda: layers.MaxPooling2D(2)),
    "mean, of lines": (LINE, lambda: layers.AveragePooling1D(2)),
    "mean": (IMAGE, lambda: layers.AveragePooling2D(2)),
    "largest of all": (IMAGE, layers.GlobalMaxPooling2D),
    "mean of all": (IMAGE, layers.GlobalAveragePooling2D),
    "convolution of volumes": (VOLUME, lambda: layers.Conv3D(4, 3)),
    "transposed, of volumes": (VOLUME, lambda: layers.Conv3DTranspose(4, 2, strides=2)),
    "largest, of volumes": (VOLUME, lambda: layers.MaxPooling3D(2)),
    "mean, of volumes": (VOLUME, lambda: layers.AveragePooling3D(2)),
    "batch norm": (IMAGE, layers.BatchNormalization),
    "layer norm": (ROW, layers.LayerNormalization),
    "group norm": (IMAGE, lambda: layers.GroupNormalization(2)),
    "RMS norm": (ROW, layers.RMSNormalization),
    "unit norm": (ROW, layers.UnitNormalization),
    "spectral norm": (ROW, lambda: layers.SpectralNormalization(layers.Dense(4))),
    "larger lines": (LINE, lambda: layers.UpSampling1D(2)),
    "larger": (IMAGE, lambda: layers.UpSampling2D(2)),
    "larger, linear": (IMAGE, lambda: layers.UpSampling2D(2, interpolation="bilinear")),
    "of another size": (IMAGE, lambda: layers.Resizing(5, 7)),
    "nearest": (IMAGE, lambda: layers.Resizing(5, 7, interpolation="nearest")),
    "larger volumes": (VOLUME, lambda: layers.UpSampling3D(2)),
    "padding of volumes": (VOLUME, lambda: layers.ZeroPadding3D(1)),
    "padding": (IMAGE, lambda: layers.ZeroPadding2D(1)),
    "cropping": (IMAGE, lambda: layers.Cropping2D(1)),
    "rescaling": (IMAGE, lambda: layers.Rescaling(1 / 255.0)),
    "LSTM": (LINE, lambda: layers.LSTM(4)),
    "GRU": (LINE, lambda: layers.GRU(4)),
    "simple": (LINE, lambda: layers.SimpleRNN(4)),
    "in both directions": (LINE, lambda: layers.Bidirectional(layers.GRU(4))),
    "at each time": (LINE, lambda: layers.TimeDistributed(layers.Dense(4))),
    "convolutional LSTM": (IMAGE, lambda: layers.ConvLSTM1D(4, 3)),
    "softmax": (ROW, layers.Softmax),
    "PReLU": (ROW, layers.PReLU),
    "attention of heads": (LINE, lambda: _to_itself(layers.MultiHeadAttention(2, 4))),
    "attention": (LINE, lambda: lambda x: layers.Attention()([x, x])),
    "additive attention": (LINE, lambda: lambda x: layers.AdditiveAttention()([x, x])),
    "dot": (ROW, lambda: lambda x: layers.Dot(1, normalize=True)([x, x * 2.0])),
}


def _to_itself(layer: Any) -> Callable[[Any], Any]:
    return lambda x: layer(x, x, use_causal_mask=True)


@pytest.mark.parametrize("name", LAYERS)
def test_all_ops_have_a_lowering(name: str) -> None:
    shape, make = LAYERS[name]
    given = tf.keras.Input(shape)
    model = tf.keras.Model(given, make()(given))
    traced = tf.function(lambda x: model(x, training=False), autograph=False)
    graph = traced.get_concrete_function(tf.TensorSpec([4, *shape])).graph.as_graph_def()
    functions = [node for one in graph.library.function for node in one.node_def]
    ops = {node.op for node in (*graph.node, *functions)}
    assert ops <= table.NAMES | GIVEN
