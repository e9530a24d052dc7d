"""Numeric differences beside gradients that are right, wrong, and of no function."""

import numpy as np
import pytest

from composite.checking import differences
from composite.checking.compare import Difference
from composite.checking.skipped import Skipped

X = np.linspace(-2.0, 2.0, 9).reshape(3, 3)  # zero is one of them
ARRAYS = [np.arange(3), X]
CUBES = [3 * X**2]


def cubes(arrays):
    """The sum of the cubes of the floating array; the integers have no gradient."""
    return float(np.sum(arrays[1] ** 3))


def test_right_ones_agree():
    close = differences.agree(CUBES, CUBES, cubes, ARRAYS)
    assert 0 < close.error < 1e-6 and close.bound == 1e-4
    assert differences.same(CUBES, [CUBES[0] * (1 + 1e-9)]).error < 2e-9


def test_one_wrong_element_is_named():
    wrong = CUBES[0].copy()
    wrong[1, 2] += 0.01
    with pytest.raises(
        Difference, match=r"tensor 0 at \[1, 2\] is 0.76.*, and numeric differences"
    ):
        differences.agree([wrong], CUBES, cubes, ARRAYS)
    with pytest.raises(Difference, match=r"at \[1, 2\] is 0.76, and the Python function's is 0.75"):
        differences.same([wrong], CUBES)
    wrong[1, 2] = np.nan
    with pytest.raises(Difference, match=r"at \[1, 2\] is nan"):
        differences.same([wrong], CUBES)
    with pytest.raises(Difference, match=r"at \[1, 2\] is nan"):
        differences.agree([wrong], CUBES, cubes, ARRAYS)


def test_what_python_says_otherwise_too_is_skipped():
    with pytest.raises(Skipped, match="not the numeric one"):
        differences.agree([X], [X], cubes, ARRAYS)


def test_kinks_and_jumps_are_left_out():
    def kinked(arrays):
        return float(np.sum(np.abs(arrays[1])) + 5 * np.sum(arrays[1] > 0))

    slopes = np.sign(X)
    slopes[1, 1] = 17.0
    differences.agree([slopes], [slopes], kinked, ARRAYS)
