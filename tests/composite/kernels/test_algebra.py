"""Kernels that are compared with their bodies over the ring before they are used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.kernels import algebra
from composite.reference import over_ring
from tests.conftest import RunPython
from tests.unmeasured import kernels_serve

_DENSE = """
import tensorflow as tf
import composite
from composite import Composite

@Composite("ComparedDense", inputs=["x: float", "w: float"], outputs=["y: float"])
def dense(x, w):
    return tf.nn.softmax(tf.matmul(x, w))

x, w = tf.random.normal([33, 40]), tf.random.normal([40, 24])
dense(x, w)
assert composite.wait(120)
print(f"{composite.explain(dense, x, w).algebra!r}, {composite.stats()['compiles']} compiled")
"""


@pytest.fixture(autouse=True)
def _compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("COMPOSITE_ALGEBRA", raising=False)
    with kernels_serve():
        yield


def _told(op: Any, *inputs: Any) -> Any:
    op(*inputs)
    assert composite.wait(120)
    return composite.explain(op, *inputs)


def test_explain_says_that_a_kernel_is_equal_by_algebra() -> None:
    @Composite("AlgebraNorm", inputs=["x: float", "w: float"], outputs=["y: float"])
    def norm(x, w):
        return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True)) * w

    told = _told(norm, tf.random.normal([9, 50]), tf.random.normal([50]))
    assert (told.path, told.algebra) == ("kernel", algebra.EQUAL)
    assert composite.stats().seconds["algebra"] > 0


def test_means_of_neighbours_are_quotients() -> None:
    """The kernel multiplies by a float next to 1/3."""

    @Composite("AlgebraMeans", inputs=["x: float", "dy: float"], outputs=["y: float", "dx: float"])
    def means(x, dy):
        dx = tf.raw_ops.AvgPoolGrad(
            orig_input_shape=[2, 9, 10, 3], grad=dy,
            ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="VALID",
        )  # fmt: skip
        return tf.nn.avg_pool2d(x, 3, 1, "VALID"), dx

    told = _told(means, tf.random.normal([2, 9, 10, 3]), tf.random.normal([2, 7, 8, 3]))
    assert (told.path, told.algebra) == ("kernel", algebra.EQUAL)


def test_infinities_are_not_finite_over_the_ring() -> None:
    @Composite("AlgebraFinite", inputs=["x: float"], outputs=["y: float"])
    def finite(x):
        low = tf.minimum(x, -float("inf"))
        return tf.where(tf.math.is_finite(low), x, 1.0) + tf.where(tf.math.is_inf(low), 2.0, x)

    told = _told(finite, tf.random.normal([9, 50]))
    assert (told.path, told.algebra) == ("kernel", algebra.EQUAL)


def test_numbers_of_16_bits_that_equal_a_constant() -> None:
    """Some of the elements that are drawn do: their bits have another sign's beside them."""

    @Composite("AlgebraNarrow", inputs=["x: bfloat16"], outputs=["y: bfloat16"])
    def narrow(x):
        return tf.where(x + x >= -128.0, x, x * 0.5)

    told = _told(narrow, tf.zeros([1 << 19], tf.bfloat16))
    assert (told.path, told.algebra) == ("kernel", algebra.EQUAL)


def test_numbers_of_16_bits_that_are_infinite_over_the_ring() -> None:
    """Some of the elements that are drawn are; in a kernel, they have other bits beside these."""

    @Composite("AlgebraNarrowFinite", inputs=["x: bfloat16"], outputs=["y: bfloat16"])
    def narrow(x):
        return tf.reduce_logsumexp(x, -1)

    told = _told(narrow, tf.zeros([1 << 17, 4], tf.bfloat16))
    assert (told.path, told.algebra) == ("kernel", algebra.EQUAL)


def test_largest_elements_of_volumes_are_not_compared() -> None:
    """TensorFlow's are those near the largest, as a kernel's are unless windows are large."""

    @Composite("AlgebraVolumes", inputs=["x: float", "dy: float"], outputs=["dx: float"])
    def gradient(x, dy):
        size = [1, 2, 2, 2, 1]
        y = tf.raw_ops.MaxPool3D(input=x, ksize=size, strides=size, padding="VALID")
        return tf.raw_ops.MaxPool3DGrad(
            orig_input=x, orig_output=y, grad=dy, ksize=size, strides=size, padding="VALID"
        )

    told = _told(gradient, tf.random.normal([2, 4, 6, 4, 3]), tf.random.normal([2, 2, 3, 2, 3]))
    assert told.path == "kernel"
    assert told.algebra == (
        "not compared by algebra: op MaxPool3DGrad is not defined over the ring"
    )


def test_explain_says_what_has_no_meaning_over_the_ring() -> None:
    @Composite("AlgebraResize", inputs=["x: float"], outputs=["y: float"])
    def resize(x):
        return tf.raw_ops.ResizeBilinear(images=x, size=[7, 9], half_pixel_centers=True)

    told = _told(resize, tf.random.normal([1, 5, 4, 3]))
    assert told.path == "kernel"
    assert told.algebra == (
        "not compared by algebra: op ResizeBilinear is not defined over the ring"
    )


def test_a_body_that_raises_over_the_ring_is_not_compared() -> None:
    @Composite("AlgebraRaises", inputs=["x: float"], outputs=["y: float"])
    def doubled(x):
        return x + tf.exp(x)

    def raises(*_: Any) -> list[Any]:
        raise tf.errors.InvalidArgumentError(None, None, "no such place")

    with mock.patch.object(over_ring, "results", raises):
        told = _told(doubled, tf.random.normal([9, 50]))
    assert told.path == "kernel"
    assert told.algebra == ("not compared by algebra: its body over the ring raises no such place")


def test_a_kernel_with_another_result_is_not_used() -> None:
    """Another one by a bit of one element, which is far below what rounding may do."""

    @Composite("AlgebraWrong", inputs=["x: float"], outputs=["y: float"])
    def doubled(x):
        return tf.tanh(x) + x

    def results(*arguments: Any) -> list[Any]:
        (y,) = true_results(*arguments)
        words = np.array(y).view("uint32")
        words.flat[-1] ^= 1
        return [words.view(y.dtype)]

    true_results = over_ring.results
    with mock.patch.object(over_ring, "results", results):
        told = _told(doubled, tf.random.normal([9, 50]))
    assert told.path == "expansion"
    assert "failed its check: by algebra, output 0 of [(9, 50)] by 3 tasks: 1 of 450" in told.reason


@pytest.mark.parametrize("limit", ["_MOST_STEPS", "_MOST_ELEMENTS"])
def test_small_sizes_are_compared_where_those_of_the_call_take_long(limit: str) -> None:
    @Composite(f"AlgebraLarge{limit}", inputs=["x: float", "w: float"], outputs=["y: float"])
    def dense(x, w):
        return tf.matmul(x, w)

    fixed, varied = tf.random.normal([256, 256]), tf.random.normal([512, 256])
    w = tf.random.normal([256, 32])
    with mock.patch.object(algebra, limit, 1 << 16):
        told = _told(dense, fixed, w)
        assert told.path == "kernel"
        assert re.fullmatch(r"not compared by algebra: .* more than 65536 .*", told.algebra)
        for rows in (33, 47, 81):
            dense(varied[:rows], w)
            assert composite.wait(120)
        told = _told(dense, varied, w)
    assert "s0" in told.reason and told.algebra == algebra.EQUAL


@pytest.mark.slow
def test_a_kernel_of_the_cache_is_made_again_where_it_was_not_compared(
    run_python: RunPython, tmp_path: Any
) -> None:
    said = []
    for wanted in ("0", "1", "1"):
        variables = {"COMPOSITE_CACHE_DIR": str(tmp_path), "COMPOSITE_ALGEBRA": wanted}
        said.append(run_python(_DENSE, env=variables).stdout.strip())
    assert said == [
        "'', 1 compiled",
        "'equal by algebra', 1 compiled",
        "'equal by algebra', 0 compiled",
    ]


def test_sizes_and_constants_and_results_in_place() -> None:
    @Composite("AlgebraScaled", inputs=["x: float", "n: int32"], outputs=["y: float"])
    def repeated(x, n):
        return tf.reshape(tf.transpose(x) * 2.0, tf.stack([n, -1]))

    x = tf.random.normal([6, 8])
    assert _told(repeated, x, tf.constant(4)).algebra == algebra.EQUAL


@pytest.mark.parametrize(
    ("is_complete", "forwards", "ways"),
    [
        (True, [], [(3, {})]),
        (False, [], [(1, {}), (3, {})]),
        (True, [[1]], [(3, {0: 1})]),
        (False, [[0, 1]], [(1, {}), (3, {0: 0}), (3, {0: 1})]),
    ],
)
def test_the_ways_that_a_kernel_is_called(
    is_complete: bool, forwards: list[list[int]], ways: list[tuple[int, dict[int, int]]]
) -> None:
    kernel = mock.Mock(forwards=forwards, proof=mock.Mock(is_complete=is_complete))
    assert list(algebra._ways(kernel)) == ways
