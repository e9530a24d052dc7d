"""Infinities and NaNs in the check of a kernel: where they may stand."""

import contextlib

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.binding import native
from composite.compiler import tvm as backend
from composite.kernels import verify
from composite.reference import adversarial
from composite.reference.source import Source
from composite.reference.tolerance import Reference
from tests.composite.kernels.test_verify import library_of


def focal(x, t):
    """The factors in front of a focal loss: a product of more than four inputs."""
    p = x * t + (1.0 - x) * (1.0 - t)
    return (0.25 * t + 0.75 * (1.0 - t)) * (1.0 - p) * (1.0 - p) * (x - x * t)


def test_roundings_do_not_decide_what_overflows(tmp_path):
    specs = [tf.TensorSpec((256, 1024), tf.bfloat16)] * 2
    library = library_of(focal, *specs)
    compiled = backend.compile(library, [s.shape.as_list() for s in specs], name="focal")
    backend.link(compiled, tmp_path / "k.so", runtime=native.library_path())
    shapes = [tuple(s.shape) for s in specs]
    assert verify.check(tmp_path / "k.so", "focal", lambda _: library, [shapes]).error < 0.02


def _distance(kernel, expansion, exact, sums=True, undetermined=False, **draw):
    found, own, exact = np.array([kernel]), np.array([expansion]), np.array([exact])
    bfloat16 = ml_dtypes.bfloat16
    reference = Reference(
        exact, own.astype(bfloat16), sums=sums, undetermined=lambda: [undetermined]
    )
    drawn = adversarial.Draw("", [], **draw)
    return verify.distance("y", found.astype(bfloat16), own.astype(bfloat16), reference, drawn)


def test_what_overflows_is_told_by_the_expansion_or_its_reference():
    largest = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    for sums in (False, True):
        assert _distance(np.inf, largest, largest * 1.01, sums) == 0
        assert _distance(largest, np.inf, largest, sums) == 0
    with pytest.raises(verify.Mismatch, match="it is inf, and 1.02"):
        _distance(np.inf, 1.02e30, 1.02e30)


def test_what_the_order_of_a_sum_decides_may_be_anything():
    largest = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    for value in (np.nan, np.inf, -np.inf, 1.0, largest):
        assert _distance(value, largest / 2, largest / 2, undetermined=True) == 0
        assert _distance(value, np.inf, np.inf, undetermined=True, special=True) == 0
    for value, message in ((np.nan, "it is nan, and 1.69"), (1.0, "is off by 1 of")):
        with pytest.raises(verify.Mismatch, match=message):
            _distance(value, largest / 2, largest / 2)


def test_sums_behind_the_largest_of_nans(tmp_path):
    """That is the lowest number: in one order, its multiples overflow, and in another they do not.

    As in a chain of separable convolutions, of which a pool takes the largest.
    """

    def chain(x, kernel, depthwise):
        y = tf.nn.max_pool2d(tf.nn.conv2d(x, kernel, 1, "SAME"), 2, 2, "SAME")
        return tf.nn.depthwise_conv2d(y, depthwise, [1, 1, 1, 1], "SAME")

    shapes = [(2, 16, 16, 1), (5, 5, 1, 8), (3, 3, 8, 1)]
    library = library_of(chain, *map(tf.TensorSpec, shapes))
    compiled = backend.compile(library, shapes, name="chain")
    backend.link(compiled, tmp_path / "k.so", runtime=native.library_path())
    assert verify.check(tmp_path / "k.so", "chain", lambda _: library, [shapes]).error < 1e-5


def test_roundings_may_decide_a_truth():
    kernel, expansion, near = (np.array([x, True]) for x in (True, False, True))
    for runs, differs in (([near], False), ([expansion], True)):
        reference = Reference(expansion, expansion, nearby=runs.copy)
        context = pytest.raises(verify.Mismatch, match="differs in 1 element")
        with context if differs else contextlib.nullcontext():
            assert verify.distance("y", kernel, expansion, reference) == 0


def test_which_infinities_of_a_loop_become_nans_may_depend_on_roundings():
    assert _distance(np.nan, -np.inf, -np.inf, special=True, fed_back=True) == 0
    with pytest.raises(verify.Mismatch, match="it is nan, and -inf"):
        _distance(np.nan, -np.inf, -np.inf, special=True)
    with pytest.raises(verify.Mismatch, match="it is nan, and 1.0"):
        _distance(np.nan, 1.0, 1.0, special=True, fed_back=True)


def test_which_roots_of_what_cancels_are_nans_depends_on_roundings(tmp_path):
    """As in a step of Adam: the second moment is read as a root in the same kernel."""

    def step(v, g, rate):
        moment = v + (g * g - v) * rate
        return moment, 1.0 - g / (tf.sqrt(moment) + 1e-7)

    specs = [tf.TensorSpec((60, 64))] * 2 + [tf.TensorSpec(())]
    library = library_of(step, *specs)
    compiled = backend.compile(library, [s.shape.as_list() for s in specs], name="adam")
    backend.link(compiled, tmp_path / "k.so", runtime=native.library_path())
    shapes = [tuple(s.shape) for s in specs]
    assert verify.check(tmp_path / "k.so", "adam", lambda _: library, [shapes]).error < 1e-3


def test_a_nan_that_no_rounding_gives_is_a_mismatch():
    kernel, expansion, near = (np.array([x, 1.0], np.float32) for x in (np.nan, 0.0, 2.0))
    for runs, differs in (([near, kernel], False), ([near, expansion], True)):
        reference = Reference(expansion.astype(np.float64), expansion, nearby=runs.copy)
        context = pytest.raises(verify.Mismatch, match="in other places")
        with context if differs else contextlib.nullcontext():
            assert verify.distance("y", kernel, expansion, reference) == 0


def _shares(x):
    return x / tf.reduce_sum(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_what_is_divided_by_a_sum_that_cancels_may_be_infinite(dtype):
    """Another order of the terms leaves nothing of their sum, or another rest."""
    row = [0.1, 0.2, 0.3, -0.6, 0.0]  # 5.6e-17 is left in float64
    spec = tf.TensorSpec((60, 5), dtype)
    source = Source(library_of(_shares, spec))
    x = np.array([row, *[[1.0, 2.0, 3.0, 4.0, 5.0]] * 59], dtype.as_numpy_dtype)
    (expected,), (reference,) = source.run([x])
    kernel = expected.copy()
    kernel[0] = [np.inf, np.inf, np.inf, -np.inf, np.nan]
    assert verify.distance("y", kernel, expected, reference) <= 1
    kernel[1, 0] = np.inf
    with pytest.raises(verify.Mismatch, match="other places; at \\[1, 0\\] it is inf"):
        verify.distance("y", kernel, expected, reference)
    wrong = expected.copy()
    wrong[1, 2] *= 1.001
    with pytest.raises(verify.Mismatch, match="is off by"):
        verify.distance("y", wrong, expected, reference)
