"""composite.check agrees with ops that are right; how it finds wrong ones is in test_wrong.py."""

import numpy as np
import pytest

import composite
from composite.checking.ways import WAYS
from tests.composite import dense_ops

RANDOM = np.random.default_rng(0)
DENSE = [RANDOM.standard_normal(s).astype(np.float32) for s in ([5, 8], [4, 8], [4])]


@pytest.mark.parametrize("act", ["", "RELU", "RELU6", "TANH"])
def test_a_right_op_agrees(act):
    report = composite.check(dense_ops.dense, *DENSE, act=act)
    assert report.ok and report.difference is None
    assert [row.way for row in report.rows] == list(WAYS)
    assert report.row("eager").samples == report.row("tf.function").samples > 5
    assert report.row("kernel").samples > 0
    assert "TestDense: every way agrees" in str(report)
