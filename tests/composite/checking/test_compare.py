"""Whether two results agree, and what rounding is allowed to do to them."""

import contextlib

import numpy as np
import pytest

from composite.checking.compare import Difference, Reruns, compare
from composite.checking.sample import Sample

EPS = float(np.finfo(np.float32).eps)


def off_by(roundings: float) -> np.ndarray:
    return np.array([1, 1 + roundings * EPS * 1.01], np.float32)


EXACT = np.array([1, 1], np.float64)


@pytest.mark.parametrize("complex_", [False, True])
def test_luck_of_what_is_compared_with_is_found_by_running_it_again(complex_):
    def typed(x):
        return x.astype(np.complex128 if x.dtype == np.float64 else np.complex64) if complex_ else x

    def agrees(found, others):
        runs = [[typed(off_by(n))] for n in others]
        compare(
            [typed(off_by(found))], [typed(off_by(0))], lambda: [typed(EXACT)], Reruns(lambda: runs)
        )

    agrees(60, [])
    with pytest.raises(Difference, match="is off by"):
        agrees(100, [])
    with pytest.raises(Difference, match="is off by"):
        agrees(100, [1, 2])
    agrees(100, [1, 3])


def test_a_jump_excuses_itself_alone():
    flat = np.ones(40, np.float32)

    def moved(place):
        return np.where(np.arange(40) == place, np.float32(3), flat)

    def agrees(found, near):
        compare([found], [flat], lambda: [flat.astype(np.float64)], Reruns(lambda: [[near]]))

    agrees(moved(5), moved(5))
    with pytest.raises(Difference, match=r"is off by .* at \[7\] it is 3.0, and 1.0 is expected"):
        agrees(moved(7), moved(5))


def test_an_element_is_not_excused_by_a_larger_one_of_another_row():
    wanted = np.ones((2, 40), np.float32)
    wanted[0] = 1e6
    found = wanted.copy()
    found[1, 3] += 1e-3
    with pytest.raises(Difference, match=r"at \[1, 3\]"):
        compare([found], [wanted], lambda: [wanted.astype(np.float64)])


def test_samples_nearby():
    given = np.array([1, 0, np.inf, -3], np.float32), np.array([1, 2], np.int32)
    for near in Sample(given, {}, "x").nearby():
        floats, integers = near.arrays()
        assert floats.dtype == np.float32
        np.testing.assert_array_equal(integers, [1, 2])
        np.testing.assert_array_equal(floats[1:3], [0, np.inf])
        assert 0 < abs(floats[0] - 1) <= EPS
        assert floats[3] != -3


@pytest.mark.parametrize(("found", "differs"), [(2.0, False), (3.0, True), (np.inf, True)])
def test_a_number_on_the_way_to_which_the_ops_overflow(found, differs):
    """An op that computes half in float32 does not overflow: float64 says what is right."""
    arrays = [np.array([x, 1.0], np.float16) for x in (found, np.nan)]
    context = pytest.raises(Difference) if differs else contextlib.nullcontext()
    with context:
        compare(arrays[:1], arrays[1:], lambda: [np.array([2.0, 1.0])])


def test_a_nan_where_inputs_nearby_have_one():
    found, wanted, other = (np.array([x, 1.0], np.float32) for x in (np.nan, 0.0, 2.0))
    compare([found], [wanted], reruns=Reruns(lambda: [[other], [found]]))
    compare([wanted], [found], reruns=Reruns(lambda: [[other], [wanted]]))
    with pytest.raises(Difference, match="a NaN in 1 other places"):
        compare([found], [wanted], reruns=Reruns(lambda: [[other], [wanted]]))
