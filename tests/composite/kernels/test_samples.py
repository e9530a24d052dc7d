"""What kernels are held to where factors of products may have 10 bits, as TensorFlow's on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.kernels.samples import Sample, Samples
from composite.kernels.verify import Mismatch, Oracle
from composite.reference import floats
from composite.reference.source import Arithmetic
from tests.compiler.tvm.conftest import library_of

Array = np.ndarray[Any, Any]
Round = Callable[[Array], Array]

SHAPES = [(24, 96), (96, 40), (40,)]


def dense(x: Any, w: Any, b: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w) + b)


def attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)


def to_bfloat16(x: Array) -> Array:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def product(x: Array, w: Array) -> Array:
    """Sums in the order of no library: in eight parts."""
    parts = np.stack([x[..., i::8] @ w[..., i::8, :] for i in range(8)])
    return np.asarray(parts.sum(axis=0, dtype=np.float32))


def dense_by(rounded: Round) -> Callable[..., Array]:
    def computed(x: Array, w: Array, b: Array) -> Array:
        return np.maximum(product(rounded(x), rounded(w)) + b, np.float32(0))

    return computed


def attention_by(rounded: Round) -> Callable[..., Array]:
    def computed(q: Array, k: Array, v: Array) -> Array:
        scores = product(rounded(q), rounded(k).T)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        sums = powers.sum(axis=-1, keepdims=True)
        return np.asarray(product(rounded(powers), rounded(v)) / sums)

    return computed


def compare(body: Any, shapes: Any, kernel: Any, *, tensor_float_32: bool = True) -> float:
    """The error of what NumPy computes in place of a kernel; raises Mismatch."""
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]

    def results(sample: Sample) -> Iterator[tuple[int, list[Array]]]:
        with np.errstate(all="ignore"):
            yield 1, [kernel(*sample.inputs).astype(np.float32)]

    arithmetic = Arithmetic(tensor_float_32=tensor_float_32)
    samples = Samples(lambda _: library_of(body, specs), [shapes], arithmetic=arithmetic)
    return Oracle(samples).compare(results).error


@pytest.mark.parametrize(
    "rounded", [floats.in_tensor_float_32, floats.cut_to_tensor_float_32, np.asarray]
)
def test_factors_may_have_ten_bits(rounded):
    assert compare(dense, SHAPES, dense_by(rounded)) < 1
    assert compare(attention, [(32, 24), (48, 24), (48, 16)], attention_by(rounded)) < 1


@pytest.mark.parametrize(
    ("body", "shapes", "kernel"),
    [
        (dense, SHAPES, dense_by(floats.in_tensor_float_32)),
        (attention, [(32, 24), (48, 24), (48, 16)], attention_by(floats.in_tensor_float_32)),
    ],
)
def test_factors_have_all_their_bits_elsewhere(body, shapes, kernel):
    with pytest.raises(Mismatch, match="is off by"):
        compare(body, shapes, kernel, tensor_float_32=False)


def without_the_last(x: Array, w: Array, b: Array) -> Array:
    return dense_by(floats.in_tensor_float_32)(x[:, :-1], w[:-1], b)


def with_sums_of_bfloat16(x: Array, w: Array, b: Array) -> Array:
    return to_bfloat16(dense_by(floats.in_tensor_float_32)(x, w, b))


def with_another_bias(x: Array, w: Array, b: Array) -> Array:
    return dense_by(floats.in_tensor_float_32)(x, w, np.roll(b, 1))


def with_a_narrow_bias(x: Array, w: Array, b: Array) -> Array:
    return dense_by(floats.in_tensor_float_32)(x, w, to_bfloat16(b))


def with_one_wrong_element(x: Array, w: Array, b: Array) -> Array:
    y = dense_by(floats.in_tensor_float_32)(x, w, b)
    y[-1, -1] += np.float32(0.01) * np.abs(y).max()
    return y


@pytest.mark.parametrize(
    "kernel",
    [
        dense_by(to_bfloat16),
        without_the_last,
        with_sums_of_bfloat16,
        with_another_bias,
        with_a_narrow_bias,
        with_one_wrong_element,
    ],
)
def test_nothing_else_is_excused_by_it(kernel):
    with pytest.raises(Mismatch):
        compare(dense, SHAPES, kernel)


def test_an_attention_of_fewer_bits_is_refused():
    with pytest.raises(Mismatch):
        compare(attention, [(32, 24), (48, 24), (48, 16)], attention_by(to_bfloat16))


def test_samples_are_the_same_each_time():
    specs = [tf.TensorSpec(shape, tf.float32) for shape in SHAPES]
    samples = Samples(lambda _: library_of(dense, specs), [SHAPES])
    first, again = list(samples), list(samples)
    assert len(first) > 5
    assert all(a is b for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("keeps", [True, False])
def test_the_first_of_each_shape_is_kept(keeps: bool) -> None:
    spec = tf.TensorSpec((None, 3), tf.float32)
    cases: list[list[tuple[int, ...]]] = [[(2, 3)], [(5, 3)]]
    samples = Samples(lambda _: library_of(lambda x: x * 2.0, [spec]), cases, keeps=keeps)
    drawn = list(samples)
    firsts = samples.firsts()
    assert [sample.shapes for sample in firsts] == cases
    assert firsts[0] is drawn[0]
    assert len(drawn) > len(firsts)
    assert bool(samples._kept) is keeps
    anew = Samples(lambda _: library_of(lambda x: x * 2.0, [spec]), cases, keeps=keeps)
    assert [sample.shapes for sample in anew.firsts()] == cases
