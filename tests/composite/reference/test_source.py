"""What a kernel is held against: the expansion's results, the same in float64, other roundings."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.reference.source import Arithmetic, Source
from composite.reference.tolerance import judge
from tests.compiler.tvm.conftest import library_of


@pytest.mark.parametrize(
    ("dtype", "expected"), [(tf.float32, np.nan), (tf.bfloat16, np.nan), (tf.half, np.inf)]
)
def test_the_reference_takes_for_zero_what_tensorflow_does(dtype, expected):
    kind = dtype.as_numpy_dtype
    multiplied = library_of(lambda x: x * np.inf, [tf.TensorSpec([2], dtype)])
    x = np.array([ml_dtypes.finfo(kind).tiny / kind(4), 1], kind)
    own, references = Source(multiplied).run([x])
    for found in (own[0], references[0].exact):
        np.testing.assert_array_equal(found.astype(np.float64), [expected, np.inf])


def test_narrow_results_are_held_against_roundings_of_float32_as_well():
    def cubes(x):
        return tf.cast(x * x * x, tf.float32)

    x = np.array([1.1, 3.3], ml_dtypes.bfloat16)
    _, (reference,) = Source(library_of(cubes, [tf.TensorSpec([2], tf.bfloat16)])).run([x])
    wide = x.astype(np.float32)
    assert next(iter(reference.nearby())).tolist() == (wide * wide * wide).tolist()
    assert reference.own.tolist() == (x * x * x).astype(np.float32).tolist()


def test_a_gpu_keeps_denormals():
    """The reference has numbers there, and what the CPU makes of zeros shows what is allowed."""
    scaled = library_of(lambda x: x * 1e6, [tf.TensorSpec([2], tf.float32)])
    x = np.array([1e-39, 1], np.float32)
    _, (reference,) = Source(scaled, Arithmetic(keeps_denormals=True)).run([x])
    np.testing.assert_allclose(reference.exact, x.astype(float) * 1e6, rtol=1e-6)
    assert judge((x.astype(float) * 1e6).astype(np.float32), reference).at is None
    assert judge(np.array([0, 1e6], np.float32), reference).at is None
    assert judge(np.array([1e-30, 1e6], np.float32), reference).at == 0
    _, (flushed,) = Source(scaled).run([x])
    assert flushed.exact[0] == 0


def test_terms_of_a_sum_are_moved_by_what_its_order_may_lose():
    """A long sum is dominated by few terms: its roundings are those of all the others, too."""
    x = np.ones((4, 1 << 14), np.float32)
    source = Source(library_of(lambda x: tf.reduce_sum(x, -1), [tf.TensorSpec(x.shape)]))
    x[:, 0] = 1e6
    far = [np.abs(source.rounded([x], seed)[0] - x.sum(1, dtype=np.float64)) for seed in range(8)]
    assert 4 * 2.0**-23 * 1e6 < np.max(far) < 16 * 2.0**-23 * 1e6
