"""Blocks of images against TF, and dilated convolutions that TF makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def close(compiler: Any, function: Any, arrays: list[np.ndarray], shapes: Any = None) -> Any:
    exact = np.asarray(function(*[tf.constant(a.astype(np.float64)) for a in arrays]))
    loaded = compiler.compile(function, arrays, shapes)
    (result,) = loaded(arrays, [exact.shape], [np.float32])
    np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)
    return loaded


def moved(compiler: Any, function: Any, array: np.ndarray, shape: Any = None) -> None:
    expected = np.asarray(function(tf.constant(array)))
    loaded = compiler.compile(function, [array], None if shape is None else [shape])
    (result,) = loaded([array], [expected.shape], [array.dtype])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
def test_depth_and_space(compiler: Any, dtype: Any) -> None:
    image = drawn(3, 4, 6, 8).astype(dtype)
    moved(compiler, lambda x: tf.nn.space_to_depth(x, 2), image)
    moved(compiler, lambda x: tf.nn.depth_to_space(x, 2), image)


@pytest.mark.parametrize("op", ["SpaceToDepth", "DepthToSpace"])
def test_channels_first_of_any_batch(compiler: Any, op: str) -> None:
    """No kernel of TensorFlow's has this layout on a CPU."""
    image = drawn(2, 12, 4, 6)
    blocks = getattr(tf.raw_ops, op)
    last = blocks(input=image.transpose(0, 2, 3, 1), block_size=2).numpy()
    expected = last.transpose(0, 3, 1, 2)
    loaded = compiler.compile(
        lambda x: blocks(input=x, block_size=2, data_format="NCHW"), [image], [("s0", 12, 4, 6)]
    )
    (result,) = loaded([image], [expected.shape], [image.dtype])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("shape", "block", "sides"),
    [
        ((2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]),
        ((2, 3, 5, 3), [2, 3], [[1, 0], [0, 1]]),
        ((3, 5, 4), [3], [[0, 1]]),
        ((2, 2, 4, 6, 1), [2, 2, 3], [[0, 0], [2, 2], [0, 0]]),
        ((1, 4), [4], [[1, 3]]),
    ],
)
def test_batch_and_space(compiler: Any, shape: Any, block: Any, sides: Any) -> None:
    image = drawn(*shape)
    moved(compiler, lambda x: tf.space_to_batch(x, block, sides), image, ("s0", *shape[1:]))
    images = tf.space_to_batch(image, block, sides).numpy()
    moved(compiler, lambda x: tf.batch_to_space(x, block, sides), images)


def test_what_blocks_cannot_do(compiler: Any) -> None:
    image = drawn(2, 4, 6, 8)
    with pytest.raises(NotCovered, match="SpaceToDepth: whether .* is made of blocks of 2"):
        compiler.compile(lambda x: tf.nn.space_to_depth(x, 2), [image], [(2, "s0", 6, 8)])
    with pytest.raises(NotCovered, match="SpaceToDepth: data_format NCHW_VECT_C"):
        compiler.compile(
            lambda x: tf.raw_ops.SpaceToDepth(input=x, block_size=2, data_format="NCHW_VECT_C"),
            [drawn(2, 3, 4, 4, 4)],
        )


@pytest.mark.parametrize("padding", ["SAME", "VALID", "CAUSAL"])
@pytest.mark.parametrize("rate", [1, 2, 5])
def test_dilated_lines_of_any_batch(compiler: Any, padding: str, rate: int) -> None:
    lines, filters = drawn(3, 23, 6), drawn(3, 6, 5)

    def convolve(x: Any, f: Any) -> Any:
        if padding == "CAUSAL":
            x = tf.pad(x, [[0, 0], [2 * rate, 0], [0, 0]])
        return tf.nn.convolution(x, f, padding=padding.replace("CAUSAL", "VALID"), dilations=rate)

    loaded = close(compiler, convolve, [lines, filters], [("s0", 23, 6), filters.shape])
    assert loaded.kernel.strategy == "convolution"


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilated_images(compiler: Any, padding: str) -> None:
    image, filters = drawn(2, 9, 12, 4), drawn(3, 2, 4, 7)

    def convolve(x: Any, f: Any) -> Any:
        return tf.nn.with_space_to_batch(
            x,
            [2, 3],
            padding,
            lambda images, *_: tf.nn.conv2d(images, f, 1, "VALID"),
            filter_shape=tf.shape(f),
        )

    loaded = close(compiler, convolve, [image, filters])
    assert loaded.kernel.strategy == "convolution"


def test_convolutions_of_other_blocks_stay_so(compiler: Any) -> None:
    """Strides, padding, or other blocks on the way back: no dilated convolution."""
    image, filters = drawn(2, 8, 8, 4), drawn(3, 3, 4, 5)

    def convolve(x: Any, f: Any) -> Any:
        images = tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])
        strided = tf.nn.conv2d(images, f, 2, "SAME")
        same = tf.nn.conv2d(images, f, 1, "SAME")
        inner = tf.nn.conv2d(images, f, 1, "VALID")
        parts = [
            tf.batch_to_space(strided, [2, 2], [[0, 0], [0, 0]]),
            tf.batch_to_space(same, [2, 2], [[0, 0], [0, 0]]),
            tf.batch_to_space(inner, [4, 1], [[0, 0], [0, 0]]),
        ]
        return tf.concat([tf.reshape(part, [-1]) for part in parts], 0)

    close(compiler, convolve, [image, filters])
