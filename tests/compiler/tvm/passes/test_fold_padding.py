"""Which paddings windows take in, and that the results stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.ir.anchors import Convolution
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.fold_padding import fold_padding
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

IMAGE, FILTER = (2, 7, 6, 8), (3, 3, 8, 8)
AROUND = [[0, 0], [0, 2], [3, 1], [0, 0]]


def convolved(image: Any, f: Any, padding: str = "VALID") -> Any:
    return tf.nn.conv2d(image, f, 2, padding)


def found(function: Any) -> Convolution:
    """The convolution of a function of an image and a filter."""
    specs = [tf.TensorSpec(shape, tf.float32) for shape in (IMAGE, FILTER)]
    read = read_function(library_of(function, specs), [IMAGE, FILTER])
    nodes = [tensor.node for tensor in topological(fold_padding(read).outputs)]
    (node,) = (node for node in nodes if isinstance(node, Convolution))
    return node


def test_zeros_are_the_windows_own() -> None:
    node = found(lambda x, f: convolved(tf.pad(tf.nn.relu(x), AROUND), f))
    assert node.image.shape == IMAGE
    assert node.window.before == (0, 3)
    node = found(lambda x, f: convolved(tf.pad(tf.pad(x, AROUND), AROUND), f, "SAME"))
    assert node.image.shape == IMAGE
    assert node.window.before == (1, 6), "SAME puts one row more in front"


@pytest.mark.parametrize(
    "padded",
    [
        lambda x: tf.pad(x, AROUND, constant_values=1.0),
        lambda x: tf.pad(x, [[1, 0], [0, 0], [0, 0], [0, 0]]),
        lambda x: tf.pad(x, [[0, 0], [2, 2], [2, 2], [0, 0]], "REFLECT"),
    ],
    ids=["ones", "images", "reflected"],
)
def test_others_stay(padded: Any) -> None:
    assert found(lambda x, f: convolved(padded(x), f)).image.shape != IMAGE


@pytest.mark.parametrize("layer", [convolved, tf.nn.depthwise_conv2d])
def test_results_are_those_of_the_padded_image(compiler: Any, layer: Any) -> None:
    def function(x: Any, f: Any) -> Any:
        image = tf.pad(tf.nn.relu(x), AROUND)
        if layer is convolved:
            return convolved(image, f)
        return layer(image, f[..., :1], [1, 2, 2, 1], "VALID")

    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in (IMAGE, FILTER)]
    loaded = compiler.compare(function, *arrays, rtol=1e-5, atol=1e-5)
    strategy = "convolution" if layer is convolved else "channelwise"
    assert loaded.kernel.strategy == f"elementwise+{strategy}", "the image is stored once, unpadded"
