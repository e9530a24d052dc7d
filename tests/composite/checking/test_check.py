"""composite.check agrees with ops that are right; how it finds wrong ones is in test_wrong.py."""

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.checking.ways import WAYS
from examples.signatures import ops as signatures
from tests.composite import dense_ops, xla_ops
from tests.composite.checking import ops

pytestmark = pytest.mark.usefixtures("kernels_win")

RANDOM = np.random.default_rng(0)
DENSE = [RANDOM.standard_normal(s).astype(np.float32) for s in ([5, 8], [4, 8], [4])]


@pytest.mark.slow
@pytest.mark.parametrize("act", ["", "RELU", "RELU6", "TANH"])
def test_a_right_op_agrees(act):
    report = composite.check(dense_ops.dense, *DENSE, act=act)
    assert report.ok and report.difference is None
    assert [row.way for row in report.rows] == list(WAYS)
    assert report.row("eager").samples == report.row("tf.function").samples > 5
    assert report.row("kernel").samples > 0
    assert "TestDense: every way agrees" in str(report)


def test_what_xla_cannot_compile_is_skipped():
    x = DENSE[0]
    report = composite.check(xla_ops.spelled, x, ways=["XLA"], samples=2, spell=True)
    assert "XLA has no kernel for AsString" in str(report)
    report = composite.check(xla_ops.spelled, x, ways=["XLA"], samples=2, spell=False)
    assert report.row("XLA").samples == 2
    report = composite.check(
        xla_ops.asserted, -np.abs(x) - 1, ways=["XLA"], samples=1, raise_on_failure=False
    )
    assert "the call raises, and XLA looks at no values" in str(report)
    report = composite.check(xla_ops.drawn, x, [1, 2], ways=["XLA"], samples=1)
    assert report.row("XLA").samples == 1


def test_an_op_without_outputs_is_compared():
    report = composite.check(
        signatures.nothing_in_nothing_out, samples=2, ways=["eager", "tf.function"]
    )
    assert report.ok and report.raised == 0 and report.row("tf.function").samples == 2


def test_xla_is_held_to_what_it_makes_of_a_body_whose_loop_tensors_decide():
    x = DENSE[0]
    report = composite.check(ops.truncated, x, ways=["XLA"])
    assert report.row("XLA").samples > 4


def test_zero_is_not_what_tensorflow_has_kept_for_minus_zero():
    x = tf.ones([3])
    assert np.isneginf((x / -0.0).numpy()).all()
    assert composite.check(ops.over_number, x, ways=["eager"], samples=1, r=0.0).ok


def test_a_check_in_which_every_call_raises_has_shown_nothing():
    x = DENSE[0]  # 5 rows of 8: no product with itself
    with pytest.raises(composite.CheckError) as raised:
        composite.check(ops.self_product, x, ways=["eager", "tf.function"], samples=2)
    report = raised.value.report
    assert (report.calls, report.raised, report.difference) == (2, 2, None)
    assert "CheckedSelfProduct: no result was compared" in str(raised.value)
    assert "raises in each of 2 calls: InvalidArgumentError" in str(raised.value)
    # One that does not raise is something.
    report = composite.check(ops.self_product, x[:, :5], ways=["eager"])
    assert report.ok and 0 < report.raised < report.calls


def test_an_infinity_beside_a_denormal_number():
    """Their product is NaN for TensorFlow, which takes the denormal for zero."""
    x, ways = np.array([1e-40, 1.0], np.float32), ["eager", "kernel, unaligned"]
    report = composite.check(ops.bend, x, by=np.inf, samples=1, ways=ways)
    assert [report.row(way).samples for way in ways] == [1, 1]


def test_gradients_that_tensorflow_has_in_eager_mode_alone_are_skipped():
    inputs = np.ones([3, 3], np.float32), np.array([True, False, True])
    report = composite.check(ops.diagonals, *inputs, samples=1, ways=["eager", "gradient"])
    assert report.row("eager").samples == 1
    assert "has no gradient in a graph: ValueError" in str(report)
