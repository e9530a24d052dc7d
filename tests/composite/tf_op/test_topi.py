"""TOPI's operators as ops: each is what NumPy computes, but for rounding."""

from __future__ import annotations

import numpy as np
import pytest

from composite import tf_op
from tests.composite.tf_op import topi_operators

pytestmark = pytest.mark.slow


def test_operators_of_topi_are_right_up_to_rounding() -> None:
    operators = topi_operators.operators()
    assert len(operators) >= 64
    library = tf_op.Module(topi_operators.module(operators))
    beyond = {}
    for name, operator in operators.items():
        for seed in range(3):
            inputs = topi_operators.drawn(operator, seed)
            off = topi_operators.ulps_off(operator, np.asarray(library[name](*inputs)), inputs)
            if off.max() > operator.ulps:
                beyond[name, seed] = off.max()
    assert beyond == {}


@pytest.mark.parametrize("name", ["log2", "sin", "cos"])
def test_where_numpy_rounds_otherwise_both_are_near_the_result(name: str) -> None:
    """TVM calls the C library, NumPy has vector code of its own: some elements differ by a bit."""
    operator = topi_operators.operators()[name]
    op = tf_op.Module(topi_operators.module({name: operator}))[name]
    differing = 0
    for seed in range(20):
        inputs = topi_operators.drawn(operator, seed)
        ours, numpys = np.asarray(op(*inputs)), operator.reference(*inputs)
        differing += int((ours != numpys).sum())
        assert topi_operators.ulps_off(operator, ours, inputs).max() < 1
        assert topi_operators.ulps_off(operator, numpys, inputs).max() < 2
    assert differing < 20 * 16
