"""tf.nn and tf.image as the library has them: losses, moments, convolutions, pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.compiler.library.cases import made

pytestmark = pytest.mark.many_cases

LABELS = np.array([[0.2, 0.8, 0.0], [1.0, 0.0, 0.0]], np.float32)
CLASSES = np.array([2, 0], np.int32)
IMAGE, FILTER = "float32[2, 6, 6, 2]", "float32[3, 3, 2, 4]"
FIRST = "float32[2, 2, 6, 6]"

CASES: list[tuple[Any, ...]] = [
    # losses
    ("tf.nn.sigmoid_cross_entropy_with_logits(x, y)", LABELS, "float32[2, 3]"),
    ("tf.nn.sigmoid_cross_entropy_with_logits(logits=y, labels=x)", LABELS, "float32[2, 3]"),
    ("tf.nn.weighted_cross_entropy_with_logits(x, y, 2.0)", LABELS, "float32[2, 3]"),
    ("tf.nn.weighted_cross_entropy_with_logits(x, y, pos_weight=y)", LABELS, "float32[2, 3]"),
    ("tf.nn.softmax_cross_entropy_with_logits(x, y)", LABELS, "float32[2, 3]"),
    ("tf.nn.softmax_cross_entropy_with_logits(labels=x, logits=y)", LABELS, "bfloat16[2, 3]"),
    ("tf.nn.softmax_cross_entropy_with_logits(x, y, axis=0)", LABELS, "float32[2, 3]"),
    ("tf.nn.softmax_cross_entropy_with_logits(x, x, axis=1)", "float32[2, 3, 2]"),
    ("tf.nn.sparse_softmax_cross_entropy_with_logits(x, y)", CLASSES, "float32[2, 3]"),
    ("tf.nn.sparse_softmax_cross_entropy_with_logits(x, logits=y)", CLASSES, "float16[2, 3]"),
    (
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x, logits=y)",
        np.array([[1, 0], [2, 2]]),
        "float64[2, 2, 3]",
    ),
    ("tf.nn.log_poisson_loss(x, y)", LABELS, "float32[2, 3]"),
    ("tf.nn.log_poisson_loss(x, y, compute_full_loss=True)", LABELS * 9, "float32[2, 3]"),
    ("tf.nn.l2_loss(x)", "float32[2, 3]"),
    # norms and moments
    ("tf.norm(x)", "float32[2, 3]"),
    ("tf.norm(x, axis=-1)", "float32[2, 3]"),
    ("tf.linalg.norm(x, ord=1, axis=0, keepdims=True)", "float32[2, 3]"),
    ("tf.norm(x, np.inf, 1)", "float64[2, 3]"),
    ("tf.norm(x, ord=2.5, axis=1)", "float32[2, 3]"),
    ("tf.norm(x, 2)", "float32[2, 3]"),
    ("tf.norm(x, 'fro', axis=[0, 1])", "float32[2, 3]"),
    ("tf.norm(x, 1, axis=(0, 1))", "float32[2, 3]"),
    ("tf.norm(x, ord=np.inf, axis=[-2, -1])", "float32[4, 2, 3]"),
    ("tf.norm(x, axis=1)", "complex64[2, 3]"),
    ("tf.linalg.normalize(x)", "float32[2, 3]"),
    ("tf.linalg.normalize(x, ord=1, axis=-1)", "float64[2, 3]"),
    ("tf.clip_by_norm(x, 1.5)", "float32[2, 3]"),
    ("tf.clip_by_norm(x, clip_norm=0.5, axes=[1])", "float64[2, 3]"),
    ("tf.clip_by_norm(x * 0.0, y)", "float32[2, 3]", np.float32(1)),
    ("tf.linalg.global_norm([x, y])", "float32[2, 3]", "float32[4]"),
    ("tf.clip_by_global_norm([x, y], 1.0)[0]", "float32[2, 3]", "float32[4]"),
    ("tf.clip_by_global_norm([x, y], 1.0)[1]", "float32[2, 3]", "float32[4]"),
    ("tf.clip_by_global_norm([x], 1.0, use_norm=y)[0][0]", "float32[4]", np.float32(3)),
    ("tf.nn.moments(x, [0])", "float32[4, 3]"),
    ("tf.nn.moments(x, axes=[0, -1], keepdims=True)", "float64[4, 3, 2]"),
    ("tf.nn.moments(x, [1])", "float16[4, 3]"),
    ("tf.nn.weighted_moments(x, [0], y)", "float32[4, 3]", np.ones([4, 1], np.float32)),
    ("tf.nn.weighted_moments(x, [0], y, keepdims=True)", "float16[4, 3]", np.arange(3)),
    ("tf.nn.normalize_moments(x, y, z, None)", np.float32(4), "float32[3]", "float32[3]"),
    ("tf.nn.normalize_moments(x, y, y, shift=z)", np.float32(4), "float32[3]", "float32[3]"),
    ("tf.nn.batch_normalization(x, y, z, None, None, 1e-3)", "float32[4, 3]", "float32[3]", 1.5),
    ("tf.nn.batch_normalization(x, y, y * y, z, y, 1e-3)", "float32[4, 3]", *["float32[3]"] * 2),
    (
        "tf.nn.batch_normalization(x, y, y * y, None, scale=z, variance_epsilon=0.1)",
        "float32[4, 3]",
        "float32[3]",
        "float32[3]",
    ),
    # convolutions
    ("tf.nn.conv1d(x, y, 1, 'SAME')", "float32[2, 6, 2]", "float32[3, 2, 4]"),
    ("tf.nn.conv1d(x, y, stride=2, padding='VALID')", "float32[2, 6, 2]", "float32[3, 2, 4]"),
    ("tf.nn.conv1d(x, y, [1, 2, 1], 'SAME', dilations=1)", "float64[2, 6, 2]", "float64[3, 2, 4]"),
    ("tf.nn.conv1d(x, y, 1, 'SAME', 'NWC', 2)", "float32[2, 6, 2]", "float32[3, 2, 4]"),
    ("tf.nn.conv2d(x, y, 1, 'SAME')", IMAGE, FILTER),
    ("tf.nn.conv2d(x, filters=y, strides=[2, 1], padding='VALID')", IMAGE, FILTER),
    ("tf.nn.conv2d(x, y, [1, 2, 2, 1], [[0, 0], [1, 0], [2, 1], [0, 0]])", IMAGE, FILTER),
    ("tf.nn.conv2d(x, y, 1, 'SAME', dilations=[2, 2])", IMAGE, FILTER),
    (
        "tf.nn.conv3d(x, y, [1, 1, 1, 1, 1], 'SAME')",
        "float32[1, 3, 4, 4, 2]",
        "float32[2, 2, 2, 2, 3]",
    ),
    ("tf.nn.conv1d_transpose(x, y, [2, 12, 2], 2)", "float32[2, 6, 4]", "float32[3, 2, 4]"),
    ("tf.nn.conv2d_transpose(x, y, [2, 12, 12, 3], 2)", IMAGE, "float32[3, 3, 3, 2]"),
    (
        "tf.nn.conv2d_transpose(x, y, tf.constant([2, 8, 8, 3]), strides=1, padding='VALID')",
        IMAGE,
        "float32[3, 3, 3, 2]",
    ),
    (
        "tf.nn.conv3d_transpose(x, y, [1, 6, 8, 8, 3], [2, 2, 2])",
        "float32[1, 3, 4, 4, 2]",
        "float32[2, 2, 2, 3, 2]",
    ),
    ("tf.nn.depthwise_conv2d(x, y, [1, 1, 1, 1], 'SAME')", IMAGE, FILTER),
    ("tf.nn.depthwise_conv2d(x, y, strides=[1, 2, 2, 1], padding='VALID')", IMAGE, FILTER),
    ("tf.nn.depthwise_conv2d(x, y, [1, 1, 1, 1], 'SAME', dilations=[2, 2])", IMAGE, FILTER),
    ("tf.nn.separable_conv2d(x, y, z, [1, 1, 1, 1], 'SAME')", IMAGE, FILTER, "float32[1, 1, 8, 3]"),
    (
        "tf.nn.dilation2d(x, y, [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])",
        IMAGE,
        "float32[2, 2, 2]",
    ),
    (
        "tf.nn.erosion2d(x, y, [1, 1, 1, 1], 'VALID', 'NHWC', dilations=[1, 1, 1, 1])",
        IMAGE,
        "float32[2, 2, 2]",
    ),
    # pooling
    *[(f"tf.nn.{name}_pool(x, 2, 2, 'SAME')", IMAGE) for name in ("avg", "max")],
    *[(f"tf.nn.{name}_pool(x, 3, [1], 'VALID')", "float32[2, 6, 3]") for name in ("avg", "max")],
    *[
        (
            f"tf.nn.{name}_pool(x, ksize=[2, 2, 1], strides=2, padding='SAME')",
            "float32[1, 4, 4, 4, 2]",
        )
        for name in ("avg", "max")
    ],
    *[(f"tf.nn.{name}_pool1d(x, [2], 2, 'SAME')", "float32[2, 6, 3]") for name in ("avg", "max")],
    *[(f"tf.nn.{name}_pool2d(x, [1, 2, 3, 1], 1, 'VALID')", IMAGE) for name in ("avg", "max")],
    *[
        (f"tf.nn.{name}_pool3d(x, 2, 2, 'VALID')", "float32[1, 4, 4, 4, 2]")
        for name in ("avg", "max")
    ],
    ("tf.nn.max_pool2d(x, 2, 2, [[0, 0], [1, 1], [0, 1], [0, 0]])", IMAGE),
    ("tf.nn.max_pool1d(x, 2, 2, padding=[[0, 0], [1, 1], [0, 0]])", "float32[2, 6, 3]"),
    ("tf.nn.max_pool_with_argmax(x, 2, 2, 'SAME')", IMAGE),
    ("tf.nn.max_pool_with_argmax(x, 2, 2, 'SAME', output_dtype=tf.int32).argmax", IMAGE),
    # images
    *[(f"tf.image.{name}(x)", IMAGE) for name in ("flip_left_right", "flip_up_down", "transpose")],
    *[
        (f"tf.image.{name}(x)", "uint8[3, 4, 2]")
        for name in ("flip_left_right", "flip_up_down", "transpose")
    ],
    ("tf.image.grayscale_to_rgb(x)", "float32[2, 3, 4, 1]"),
    ("tf.image.crop_to_bounding_box(x, 1, 2, 3, 2)", IMAGE),
    ("tf.image.crop_to_bounding_box(x, 0, 1, target_height=2, target_width=3)", "uint8[3, 4, 2]"),
    ("tf.image.pad_to_bounding_box(x, 1, 2, 8, 9)", IMAGE),
    ("tf.image.pad_to_bounding_box(x, 0, 0, 3, 6)", "uint8[3, 4, 2]"),
    ("tf.image.image_gradients(x)", IMAGE),
    ("tf.image.total_variation(x)", IMAGE),
    ("tf.image.total_variation(images=x)", "float64[3, 4, 2]"),
    ("tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')", IMAGE),
    (
        "tf.image.crop_and_resize(x, y, z, [2, 3])",
        IMAGE,
        np.array([[0.1, 0.2, 0.8, 0.9]], np.float32),
        np.array([1], np.int32),
    ),
    ("tf.image.rgb_to_hsv(x)", np.abs(made("float32[2, 3, 3]")) / 9),
]


@pytest.mark.parametrize(("text", "inputs"), [(text, inputs) for text, *inputs in CASES])
def test_as_tensorflow(text: str, inputs: list[Any], case: Callable[[str], Any]) -> None:
    values = [made(spec, seed) for seed, spec in enumerate(inputs)]
    case(text).check(*values, traced=True)


DIFFERENTIABLE: list[tuple[Any, ...]] = [
    ("tf.nn.softmax_cross_entropy_with_logits(x, y)", LABELS, "float32[2, 3]"),
    ("tf.nn.sigmoid_cross_entropy_with_logits(x, y)", LABELS, "float32[2, 3]"),
    ("tf.nn.moments(x, [0])[1]", "float32[4, 3]"),
    ("tf.nn.batch_normalization(x, y, y * y, None, None, 1e-3)", "float32[4, 3]", "float32[3]"),
    ("tf.math.reduce_logsumexp(x, axis=1)", "float32[4, 3]"),
    ("tf.norm(x, axis=1)", "float32[4, 3]"),
    ("tf.clip_by_norm(x, 0.5)", "float32[4, 3]"),
    ("tf.nn.conv2d(x, y, 2, 'SAME')", IMAGE, FILTER),
    ("tf.nn.depthwise_conv2d(x, y, [1, 1, 1, 1], 'SAME', dilations=[2, 2])", IMAGE, FILTER),
    ("tf.nn.max_pool2d(x, 2, 2, 'SAME')", IMAGE),
    ("tf.sort(x)", "float32[4, 3]"),
    ("tf.gather(x, [2, 0])", "float32[4, 3]"),
    ("tf.repeat(x, 2, axis=1)", "float32[4, 3]"),
    ("tf.tensordot(x, y, 1)", "float32[2, 3]", "float32[3, 4]"),
    ("tf.linalg.logdet(x)", np.eye(3) * 2.0 + 0.1),
]


@pytest.mark.parametrize(("text", "inputs"), [(text, inputs) for text, *inputs in DIFFERENTIABLE])
def test_gradients_as_tensorflow(text: str, inputs: list[Any], case: Callable[[str], Any]) -> None:
    tensors = [tf.constant(made(spec, seed)) for seed, spec in enumerate(inputs)]
    op = case(text).op(tensors, tensors[0].dtype.name)
    named = dict(zip("xyz", tensors, strict=False))
    gradients = []
    for compute in (lambda: op(*tensors), lambda: eval(text, {"tf": tf}, named)):
        with composite.options(backend="tf"), tf.GradientTape() as tape:
            tape.watch(tensors)
            y = compute()
        gradients.append(tape.gradient(y, tensors))
    for ours, theirs in zip(*gradients, strict=True):
        one, other = (tf.convert_to_tensor(slope) for slope in (ours, theirs))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
