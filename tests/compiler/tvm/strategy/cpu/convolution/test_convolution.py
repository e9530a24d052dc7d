"""Convolutions: sizes, strides, dilations, padding, groups and epilogues against TF in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from composite.compiler import tvm as backend
from tests import draws
from tests.compiler.tvm.read.cells import over

SIZES = st.sampled_from([1, 2, 3, 5, 7, 8, 13, 29])
CHANNELS = st.sampled_from([1, 2, 3, 5, 8, 16, 24])
SPANS = st.sampled_from([1, 2, 3, 5])
PADDINGS = {
    "SAME": (),
    "VALID": (),
    "EXPLICIT": (0, 0, 2, 1, 0, 3, 0, 0),
}
_CHECKS = draws.kernels(30)


def uniform(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    random = np.random.default_rng(sum(shape) * 31 + len(shape))
    return random.uniform(-1, 1, shape).astype(dtype)


def layer(
    padding: str = "SAME", strides: tuple[int, int] = (1, 1), dilations: tuple[int, int] = (1, 1)
) -> Any:
    def function(x: Any, f: Any, b: Any) -> Any:
        y = tf.raw_ops.Conv2D(
            input=x,
            filter=f,
            strides=[1, *strides, 1],
            dilations=[1, *dilations, 1],
            padding=padding,
            explicit_paddings=list(PADDINGS[padding]),
        )
        return tf.nn.relu(tf.nn.bias_add(y, b))

    return function


def check(
    compiler: Any,
    function: Any,
    arrays: list[np.ndarray],
    shapes: Any = None,
    **options: Any,
) -> Any:
    """Compare with TF in float64; the bound is that of a sum of rounded products."""
    exact = np.asarray(function(*[tf.constant(a.astype(np.float64)) for a in arrays]))
    loaded = compiler.compile(function, arrays, shapes, **options)
    (result,) = loaded(arrays, [exact.shape], [arrays[0].dtype])
    epsilon = float(ml_dtypes.finfo(arrays[0].dtype).eps)
    single = min(max(epsilon, 2.0**-23), epsilon)
    depth = int(np.prod(arrays[1].shape[:3]))
    np.testing.assert_allclose(
        result.astype(np.float64), exact, rtol=2 * epsilon, atol=(depth + 4) * single
    )
    return loaded


@given(
    size=st.tuples(SIZES, SIZES), span=st.tuples(SPANS, SPANS),
    channels=CHANNELS, filters=CHANNELS, images=st.sampled_from([1, 2, 7]),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(list(PADDINGS)), tasks=st.sampled_from([1, 3]),
)  # fmt: skip
@_CHECKS
def test_any_shape(
    compiler: Any, *, size: Any, span: Any, channels: int, filters: int, images: int,
    strides: Any, padding: str, tasks: int,
) -> None:  # fmt: skip
    around = (3, 3) if padding == "EXPLICIT" else (0, 0)
    if padding != "SAME":
        span = tuple(min(s, n + a) for s, n, a in zip(span, size, around, strict=True))
    arrays = [uniform(images, *size, channels), uniform(*span, channels, filters)]
    loaded = check(compiler, layer(padding, strides), [*arrays, uniform(filters)], tasks=tasks)
    dense = span == (1, 1) and strides == (1, 1) and padding != "EXPLICIT"
    assert loaded.kernel.strategy == "convolution" or dense


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dilations", [(2, 2), (1, 3), (2, 1)])
def test_dilations(compiler: Any, padding: str, dilations: tuple[int, int]) -> None:
    arrays = [uniform(2, 11, 9, 8), uniform(3, 3, 8, 20), uniform(20)]
    check(compiler, layer(padding, (1, 1), dilations), arrays)


@pytest.mark.parametrize(("channels", "filters", "groups"), [(4, 8, 2), (12, 30, 3), (24, 16, 2)])
def test_groups(compiler: Any, channels: int, filters: int, groups: int) -> None:
    arrays = [uniform(2, 7, 5, channels), uniform(3, 3, channels // groups, filters)]
    check(compiler, layer(), [*arrays, uniform(filters)])


@pytest.mark.parametrize(
    ("channels", "filters", "groups", "span"),
    [(3, 17, 1, 3), (8, 16, 1, 1), (6, 12, 3, 3), (5, 5, 5, 2)],
)
def test_integers_are_exact(
    compiler: Any, channels: int, filters: int, groups: int, span: int
) -> None:
    random = np.random.default_rng(channels)

    def integers(*shape: int) -> Any:
        return random.integers(-40000, 40000, shape).astype(np.int32)

    depth = channels // groups
    arrays = [integers(2, 9, 7, channels), integers(span, span, depth, filters), integers(filters)]
    arrays[1] %= 256
    strides = [1, 2, 2, 1]

    def function(x: Any, f: Any, b: Any) -> Any:
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, f, strides, "SAME"), b))

    exact = function(*[tf.constant(a.astype(np.float64)) for a in arrays])
    (result,) = compiler.compile(function, arrays)(arrays, [exact.shape], [np.int32])
    np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dtypes(compiler: Any, dtype: Any, padding: str) -> None:
    shapes = [(2, 9, 7, 16), (3, 3, 16, 24), (24,)]
    check(compiler, layer(padding), [uniform(*s, dtype=dtype) for s in shapes])


@pytest.mark.parametrize("isa", ["x86-64-v2", "x86-64-v3"])
def test_other_levels(compiler: Any, isa: str) -> None:
    arrays = [uniform(2, 9, 7, 5), uniform(3, 3, 5, 37), uniform(37)]
    check(compiler, layer("SAME", (2, 2)), arrays, target=backend.Target.of(isa, 2))


def test_batch_of_any_size(compiler: Any) -> None:
    arrays = [uniform(3, 6, 6, 8), uniform(3, 3, 8, 16), uniform(16)]
    loaded = check(compiler, layer(), arrays, [("s0", 6, 6, 8), (3, 3, 8, 16), (16,)])
    assert loaded.kernel.out_shapes == ["s0,6,6,16"]
    for images in (0, 1, 2, 70):
        arrays[0] = uniform(images, 6, 6, 8)
        exact = np.asarray(layer()(*map(tf.constant, arrays)))
        (result,) = loaded(arrays, [exact.shape], [exact.dtype])
        np.testing.assert_allclose(result, exact, atol=1e-4)
    assert loaded.launches == 1, "large work only is shared out"


@given(size=st.tuples(SIZES, SIZES), images=st.sampled_from([0, 1, 3]))
@draws.kernels(8)
def test_images_of_any_size(compiler: Any, size: tuple[int, int], images: int) -> None:
    arrays = [uniform(images, *size, 3), uniform(3, 5, 3, 16), uniform(16)]
    check(compiler, layer(), arrays, [("s0", "s1", "s2", 3), (3, 5, 3, 16), (16,)])


def test_parallel_tasks_in_any_number_and_order(compiler: Any) -> None:
    arrays = [uniform(3, 20, 17, 16), uniform(3, 3, 16, 40), uniform(40)]
    for tasks in (1, 2, 64):
        assert check(compiler, layer(), arrays, tasks=tasks).launches == 1


def test_one_pixel_a_window_is_a_product_of_matrices(compiler: Any) -> None:
    arrays = [uniform(2, 9, 7, 16), uniform(1, 1, 16, 40), uniform(40)]
    assert check(compiler, layer(), arrays).kernel.strategy == "gemm"
    assert check(compiler, layer("VALID", (2, 2)), arrays).kernel.strategy == "convolution"


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_sequences_fuse_with_what_follows(compiler: Any, padding: str) -> None:
    def function(x: Any, f: Any, b: Any) -> Any:
        return tf.tanh(tf.nn.conv1d(x, f, 2, padding) + b)

    arrays = [uniform(3, 50, 6), uniform(5, 6, 24), uniform(24)]
    assert check(compiler, function, arrays).kernel.strategy == "convolution"


def test_residual_block_is_two_stages(compiler: Any) -> None:
    def function(x: Any, f: Any, b: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, f, 1, "SAME") + b)
        return tf.nn.relu(x + tf.nn.conv2d(y, f, 1, "SAME") * 0.1)

    arrays = [uniform(2, 9, 7, 16), uniform(3, 3, 16, 16) * 0.3, uniform(16)]
    loaded = check(compiler, function, arrays)
    assert loaded.kernel.strategy == "convolution+convolution"


def test_operands_that_are_computed(compiler: Any) -> None:
    def function(x: Any, f: Any) -> Any:
        return tf.nn.conv2d(tf.transpose(x * 2.0, [0, 2, 1, 3]), f * 0.5, 1, "SAME")

    check(compiler, function, [uniform(2, 9, 7, 16), uniform(3, 3, 16, 24)])


@pytest.mark.parametrize(
    ("image", "filters", "dtype"),
    [
        ((1, 3, 3, 16), (3, 3, 16, 200), np.float32),  # tasks divide the filters
        ((2, 30, 20, 8), (3, 3, 8, 20), np.float32),  # tasks have all of them
        ((2, 7, 5, 24), (3, 3, 12, 40), np.float16),  # two groups
    ],
    ids=["few windows", "many windows", "groups"],
)
def test_constant_filters_are_packed_once(
    compiler: Any, image: tuple[int, ...], filters: tuple[int, ...], dtype: Any
) -> None:
    arrays = [uniform(*s, dtype=dtype) for s in (image, filters, filters[-1:])]
    (packed,) = check(compiler, layer(), arrays, constants=[1]).kernel.packed
    assert packed.source == 1
    assert packed.elements >= arrays[1].size


def test_filters_are_packed_before_a_loop(compiler: Any) -> None:
    def function(x: Any, f: Any) -> Any:
        (y,) = over(3, lambda _, y: (tf.tanh(tf.nn.conv2d(y, f, 1, "SAME")),), x)
        return y

    check(compiler, function, [uniform(2, 6, 5, 8), uniform(3, 3, 8, 8)])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"strides": [1, 2, 2, 1], "padding": "SAME"}, "stride 2 of unknown size"),
        ({"strides": [1, 1, 1, 1], "padding": "VALID"}, "fits into an unknown size"),
    ],
)
def test_what_only_the_call_knows_is_not_covered(
    compiler: Any, options: dict[str, Any], reason: str
) -> None:
    arrays = [uniform(1, 9, 9, 3), uniform(3, 3, 3, 4)]
    with pytest.raises(backend.NotCovered, match=reason):
        compiler.compile(
            lambda x, f: tf.raw_ops.Conv2D(input=x, filter=f, **options),
            arrays,
            [(1, "s0", "s1", 3), (3, 3, 3, 4)],
        )
