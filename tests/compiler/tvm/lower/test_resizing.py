"""Images of another size against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered

WAYS = [
    {"align_corners": False, "half_pixel_centers": True},
    {"align_corners": False, "half_pixel_centers": False},
    {"align_corners": True, "half_pixel_centers": False},
]
SIZES = [(10, 14), (3, 4), (5, 7), (5, 20), (1, 1), (13, 3)]


def drawn(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-9, 9, shape).astype(dtype)


def resized(compiler: Any, op: str, image: np.ndarray, size: Any, **how: Any) -> tuple[Any, Any]:
    """What TensorFlow returns, and what a kernel for any batch does."""

    def function(x: Any) -> Any:
        return getattr(tf.raw_ops, op)(images=x, size=size, **how)

    expected = function(image).numpy()
    loaded = compiler.compile(function, [image], [("s0", *image.shape[1:])])
    (result,) = loaded([image], [expected.shape], [expected.dtype])
    return expected, result


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("size", SIZES)
def test_nearest(compiler: Any, size: Any, how: dict[str, bool]) -> None:
    for image in (drawn(np.float32, 2, 5, 7, 3), drawn(np.int32, 1, 5, 7, 17)):
        expected, result = resized(compiler, "ResizeNearestNeighbor", image, size, **how)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("size", SIZES)
def test_bilinear(compiler: Any, size: Any, how: dict[str, bool]) -> None:
    for image in (drawn(np.float32, 2, 5, 7, 3), drawn(np.float16, 1, 5, 7, 17)):
        expected, result = resized(compiler, "ResizeBilinear", image, size, **how)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_infinities_are_mixed_as_tensorflow_does(compiler: Any) -> None:
    image = drawn(np.float32, 1, 4, 4, 16)
    image[0, 1, 2], image[0, 3, 0] = np.inf, np.nan
    for size in [(8, 4), (4, 4), (7, 9)]:
        expected, result = resized(compiler, "ResizeBilinear", image, size, **WAYS[0])
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_sizes_must_be_known(compiler: Any) -> None:
    image = drawn(np.float32, 1, 4, 6, 3)
    with pytest.raises(NotCovered, match="ResizeBilinear: an image .* of unknown size"):
        compiler.compile(lambda x: tf.image.resize(x, [8, 8]), [image], [(1, "s0", 6, 3)])
    with pytest.raises(NotCovered, match="ResizeNearestNeighbor: .5000, 1. of .4, 6. pixels"):
        compiler.compile(lambda x: tf.image.resize(x, [5000, 1], "nearest"), [image])
