"""What a kernel's result may differ by: wrong ones are told from right ones, element by element."""

import ml_dtypes
import numpy as np
import pytest

from composite.reference.tolerance import Reference, judge

RANDOM = np.random.default_rng(0)


def numbers(*shape):
    return RANDOM.standard_normal(shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("sums", [True, False])
def test_what_is_rounded_once_is_right(dtype, sums):
    exact = numbers(50, 64)
    found = exact.astype(dtype)
    verdict = judge(found, Reference(exact, found, sums=sums))
    assert verdict.at is None
    assert 0 < verdict.error <= float(ml_dtypes.finfo(dtype).eps)


def test_a_small_row_is_not_excused_by_a_large_one():
    exact = np.stack([numbers(64) * 1e6, numbers(64)])
    found = exact.astype(np.float32)
    found[1, 5] += 0.01
    verdict = judge(found, Reference(exact, exact.astype(np.float32)))
    assert verdict.at == 64 + 5
    assert verdict.error == pytest.approx(0.01 / np.abs(exact[1]).max(), rel=1e-3)
    assert verdict.allowed < verdict.error / 10


def test_an_element_is_not_excused_by_its_row_where_nothing_is_summed():
    exact = np.ones((4, 64))
    exact[2, 3] = 1e-6
    found, own = exact.astype(np.float32), exact.astype(np.float32)
    found[2, 3] = 2e-6
    own[2, 10:] += 1e-5
    assert judge(found, Reference(exact, own, sums=True)).at is None
    assert judge(found, Reference(exact, own, sums=False)).at == 2 * 64 + 3


def test_what_is_left_where_a_result_cancels_is_shown_by_other_roundings():
    exact = np.full((1, 64), 1e-9)
    own = np.zeros((1, 64), np.float32)
    found = np.full((1, 64), 8e-7, np.float32)
    asked = []

    def nearby():
        for error in (6e-8, -1.2e-7, 1.2e-7):
            asked.append(error)
            yield np.full((1, 64), error, np.float32)

    assert judge(found, Reference(exact, own, sums=False)).at is not None
    assert judge(found, Reference(exact, own, sums=False, nearby=nearby)).at is None
    assert asked == [6e-8, -1.2e-7]


def test_an_element_at_a_jump_does_not_measure_its_row():
    exact = numbers(3, 64)
    found, own = exact.astype(np.float32), exact.astype(np.float32)
    own[1, 7] += 1
    found[1, 7] += 1
    assert judge(found, Reference(exact, own)).at is None
    found[1, 8] += 1e-3
    assert judge(found, Reference(exact, own)).at == 64 + 8


def test_sixteen_bits_are_held_to_two_roundings():
    exact = np.ones(64)
    own = exact.astype(ml_dtypes.bfloat16)
    for error, at in ((0.0078, None), (0.04, 3)):
        found = own.copy()
        found[3] = 1 + error
        assert judge(found, Reference(exact, own, sums=False)).at == at


def test_the_ends_of_the_numbers():
    exact = np.array([1e-40, -1e-40, 9e-38, np.inf, np.nan, 1.0])
    own = np.array([0, 0, 9e-38, np.inf, np.nan, 1.0], np.float32)
    assert judge(own, Reference(exact, own, sums=False)).at is None
    flushed = np.where(np.abs(own) < 2e-37, np.float32(0), own)
    assert judge(flushed, Reference(exact, own, sums=False)).at == 2


def test_doubles_are_measured_by_their_roundings_not_those_of_floats():
    exact = numbers(8, 64)
    coarser = float(np.finfo(np.float32).eps / np.finfo(np.float64).eps)
    reference = Reference(exact, exact.astype(np.float32), coarser)
    assert judge(exact * (1 + 1e-15), reference).at is None
    assert judge(exact * (1 + 1e-9), reference).at is not None


@pytest.mark.parametrize("sums", [True, False])
def test_no_digit_is_known_of_a_sum_on_the_way_to_which_the_ops_overflow(sums):
    exact = np.ones((4, 64))
    found, own = exact.astype(np.float32), exact.astype(np.float32)
    found[2, 3], own[2, 3] = 5.0, np.inf
    verdict = judge(found, Reference(exact, own, sums=sums))
    assert verdict.at == (None if sums else 2 * 64 + 3)
    found[2, 4] = 5.0  # where they do not
    assert judge(found, Reference(exact, own, sums=True)).at == 2 * 64 + 4


def test_the_error_is_a_part_of_what_has_digits():
    """A result of rounding alone is compared, and is no measure of the others."""
    exact = numbers(3, 64)
    own = exact.astype(np.float32)
    found = own.copy()
    exact[2] = 1.0
    own[2], found[2] = -1.0, -1.0
    found[0, 7] += 4e-6
    verdict = judge(found, Reference(exact, own))
    assert verdict.at is None
    size = np.abs(exact[0]).max()
    assert verdict.error == pytest.approx(4e-6 / size, rel=0.1)
    assert judge(found[2:], Reference(exact[2:], own[2:])).error == 0
    found[2] = 40.0
    assert judge(found, Reference(exact, own)).at is not None
