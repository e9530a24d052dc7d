"""The ring's ops against TensorFlow's own, on integers, of which sums and products are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import op_traits
from composite.compiler.tvm.errors import NotCovered
from composite.ops import functions
from composite.reference import over_ring, ring_words
from composite.reference.evaluate import Evaluator
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.exact import gradient

raw = tf.raw_ops


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-9, 10, shape).astype(np.float32)


def run(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    """What a function gives over the ring for arrays that stand for themselves."""
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arrays]
    body = functions.body(library_of(function, specs))
    elements = [over_ring.constant(a) for a in arrays]
    return Evaluator(body, runner=over_ring.runner).run(elements)


def bits(tensor: Any) -> np.ndarray:
    array = np.array(tensor)
    return array.view(np.uint32) if array.dtype == np.float32 else array


def convolve(op: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    return lambda x, k: op(input=x, filter=k, **({"strides": [1, 2, 2, 1]} | more))


IMAGES, FILTERS, DEEP = integers(2, 7, 6, 4), integers(3, 2, 4, 5), integers(3, 2, 4, 2)
SAME = convolve(raw.Conv2D, padding="SAME")
PADS = [0, 0, 1, 0, 2, 1, 0, 0]
EXPLICIT = convolve(raw.Conv2D, padding="EXPLICIT", explicit_paddings=PADS)
DEPTHWISE = convolve(raw.DepthwiseConv2dNative, padding="SAME")
IDS = np.array([0, 2, -1, 1, 2], np.int32)

CASES: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "arithmetic": (lambda x, y: (x + y, x - y, x * y, -x, tf.square(x)), [IMAGES] * 2),
    "nothing": (
        lambda x: (
            tf.cumsum(x, 1, exclusive=True),
            tf.reduce_sum(x, 1),
            tf.reduce_mean(x, 1),
            tf.reduce_max(x, 1),
        ),
        [integers(3, 0)],
    ),
    "order": (
        lambda x, y: (tf.maximum(x, y), tf.minimum(x, y), abs(x), tf.sign(x), x < y, x >= y),
        [IMAGES, IMAGES[::-1].copy()],
    ),
    "clipping": (
        lambda x: (tf.nn.relu(x), tf.nn.relu6(x), tf.clip_by_value(x, -3.0, 5.0)),
        [IMAGES],
    ),
    "reductions": (
        lambda x: (
            tf.reduce_sum(x, [0, 2]),
            tf.reduce_max(x, -1, keepdims=True),
            tf.reduce_min(x),
            tf.reduce_prod(x[:, :2, :2], 1),
            tf.argmax(x, 1),
            tf.argmin(x, 2, tf.int32),
        ),
        [IMAGES],
    ),
    "products": (
        lambda x, y: (
            tf.matmul(x, y, transpose_b=True),
            tf.einsum("bij,bkj->kib", x, y),
            tf.matmul(x[0], y[0], transpose_a=True),
        ),
        [integers(2, 3, 4), integers(2, 3, 4)],
    ),
    "bias": (tf.nn.bias_add, [IMAGES, integers(4)]),
    "convolution": (SAME, [IMAGES, FILTERS]),
    "its gradients": (gradient(SAME), [IMAGES, FILTERS]),
    "explicit padding": (gradient(EXPLICIT), [IMAGES, FILTERS]),
    "dilations": (
        convolve(raw.Conv2D, padding="VALID", strides=[1] * 4, dilations=[1, 2, 3, 1]),
        [IMAGES, FILTERS],
    ),
    "groups": (SAME, [IMAGES, integers(3, 2, 2, 6)]),
    "depthwise": (DEPTHWISE, [IMAGES, DEEP]),
    "gradients of depthwise": (gradient(DEPTHWISE), [IMAGES, DEEP]),
    "volumes": (
        gradient(lambda x, k: tf.nn.conv3d(x, k, [1, 1, 2, 1, 1], "SAME")),
        [integers(1, 3, 4, 5, 2), integers(2, 3, 2, 2, 3)],
    ),
    "pool": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), [IMAGES]),
    "gradient of pool": (
        gradient(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID")),
        [np.arange(96, dtype=np.float32).reshape(1, 6, 4, 4)],
    ),
    "running": (
        lambda x: (
            tf.cumsum(x, 1),
            tf.cumsum(x, -1, exclusive=True, reverse=True),
            tf.math.cumprod(x[:, :3], 1, exclusive=True),
        ),
        [IMAGES],
    ),
    "mirrored gradients": (
        lambda x: (
            gradient(lambda y: tf.pad(y, [[0, 1], [2, 1], [3, 3], [0, 0]], "REFLECT") * 3.0)(x),
            gradient(lambda y: tf.pad(y, [[1, 1], [4, 0], [0, 2], [3, 1]], "SYMMETRIC"))(x),
        ),
        [IMAGES],
    ),
    "segments": (
        lambda x, ids: (
            tf.math.unsorted_segment_sum(x, ids, 3),
            tf.math.unsorted_segment_max(x, ids, 3)[:2],
            tf.math.unsorted_segment_prod(x, ids, 3),
        ),
        [integers(5, 3), IDS],
    ),
    "scattering": (
        lambda x, u: (
            tf.scatter_nd([[1], [3], [1]], u, [4, 5]),
            tf.tensor_scatter_nd_add(x, [[1], [3], [1]], u),
            tf.tensor_scatter_nd_sub(x, [[1], [3], [1]], u),
        ),
        [integers(4, 5), integers(3, 5)],
    ),
    "movement": (
        lambda x: (
            tf.transpose(x, [3, 0, 2, 1]),
            tf.pad(x, [[0, 1], [2, 0], [0, 0], [1, 1]]),
            tf.where(x > 0.0, x, tf.ones_like(x)),
            tf.gather(x, [1, 0, 1], axis=2),
            tf.one_hot([1, 0], 3),
        ),
        [IMAGES],
    ),
    "casts": (
        lambda x: (tf.cast(x, tf.int32), tf.cast(tf.cast(x, tf.int64) * 3, tf.float32)),
        [IMAGES],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_integers_are_computed_as_tensorflow_does(name: str) -> None:
    function, arrays = CASES[name]
    wanted = tf.nest.flatten(function(*map(tf.constant, arrays)))
    for got, want in zip(run(function, arrays), wanted, strict=True):
        np.testing.assert_array_equal(bits(got), bits(over_ring.constant(want.numpy())))


def test_an_op_without_a_meaning_is_told() -> None:
    with pytest.raises(
        NotCovered, match="op StatelessRandomUniformV2 is not defined over the ring"
    ):
        run(lambda x: x + tf.random.stateless_uniform([4], [1, 2]), [integers(4)])


def test_every_op_is_one_of_kernels() -> None:
    assert [op for op in over_ring.OPS if op_traits.of(op).family is None] == []


WORDS = ("uint16", "uint32", "uint64")


def _words(shape: Sequence[int], dtype: str, seed: int) -> np.ndarray:
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(np.random.default_rng(seed).bytes(count), dtype).reshape(shape)


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 1), (1, 1)),
        ((9, 40), (40, 37)),
        ((2, 3, 5), (5, 16)),
        ((3, 1, 6, 4), (2, 4, 33)),
        ((4, 0), (0, 3)),
        ((0, 4), (4, 3)),
        ((4, 7), (7, 0)),
    ],
)
def test_products_of_words_are_those_of_numpy(
    dtype: str, a: Sequence[int], b: Sequence[int]
) -> None:
    x, y = _words(a, dtype, 0), _words(b, dtype, 1)
    np.testing.assert_array_equal(ring_words.product(x, y), np.matmul(x, y))
    turned = np.ascontiguousarray(y.T).T if y.ndim == 2 else y
    np.testing.assert_array_equal(ring_words.product(x, turned), np.matmul(x, y))


@pytest.mark.parametrize(
    "equation",
    [
        "abc,cde->abde",
        "abc,abd->acd",
        "abc,bcd->ad",
        "abc,abc->",
        "ab,cd->dabc",
        "abc,c->ab",
        "aab,bc->ac",
        "abc,bd->ad",
        "...b,bc->...c",
    ],
)
def test_contractions_of_words_are_those_of_numpy(equation: str) -> None:
    sizes = dict(zip("abcde.", (3, 4, 5, 2, 6, 2), strict=True))
    terms = equation.partition("->")[0].replace("...", ".").split(",")
    x, y = (_words([sizes[c] for c in t], "uint32", i) for i, t in enumerate(terms))
    got = ring_words.contracted(equation, x, y)
    np.testing.assert_array_equal(got, np.einsum(equation, x, y))
