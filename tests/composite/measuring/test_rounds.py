"""What rounds of timed runs say of a kernel."""

import functools

import pytest

from composite.measuring import rounds
from composite.measuring.rounds import Round


def test_a_kernel_does_not_lose_for_a_load_that_ends():
    loaded, quiet, slow = ([Round(us * 1e-6, 560e-6, 5e-6)] * 8 for us in (600, 300, 800))
    for batches, ratio, left in (
        ([loaded, quiet, quiet], 0.53, 0),
        ([quiet, loaded, loaded], 0.53, 2),  # it has won
        ([slow, slow, slow], 1.43, 0),
    ):
        taken = iter(batches)
        found = rounds.settled(functools.partial(next, taken), 1)
        assert rounds.times(found, 1).ratio == pytest.approx(ratio, abs=0.01)
        assert len(list(taken)) == left


def test_what_the_clock_does_not_tell_is_neither_a_time_nor_a_verdict():
    empty = 5e-6
    for copies in (1, 16):
        # All that is measured is what runs of an empty function differ by.
        noise = [Round(empty + i % 3 * 1e-9, empty + i % 2 * 2e-9, empty) for i in range(9)]
        times = rounds.times(noise, copies)
        assert times.kernel_us >= 0.01 and times.expansion_us >= 0.01
        assert times.ratio == 1 and times.close
        # A kernel that is below what can be told, and an expansion that is not.
        found = rounds.times([Round(empty, empty + copies * 1e-6, empty)] * 9, copies)
        assert found.kernel_us >= 0.01 and found.ratio < 0.2 and not found.close


def test_a_time_is_no_less_than_what_runs_of_the_same_function_differ_by():
    """A busy machine: runs of the kernel are as long as those of the function without it."""
    empty, copies = 60e-6, 16
    late = [0, 20e-6, 35e-6, 5e-6, 60e-6]
    slow = rounds.times([Round(empty, empty + copies * 70e-6, empty + d) for d in late], copies)
    assert slow.kernel_us >= 1 and slow.expansion_us == pytest.approx(70) and not slow.close
    both = rounds.times([Round(empty, empty + 8e-6, empty + d) for d in late], copies)
    assert both.kernel_us == both.expansion_us and both.close


@pytest.mark.parametrize(("disturbed", "left"), [({1, 2}, 4), (set(), 6), ({0, 1, 2, 3}, 6)])
def test_rounds_in_which_a_thread_was_preempted_are_left_out(monkeypatch, disturbed, left):
    """Where too few others are left, all count."""
    asked = 0

    def preemptions():
        nonlocal asked
        number, after = divmod(asked, 2)
        asked += 1
        return number in disturbed if after else 0

    monkeypatch.setattr(rounds, "_preemptions", preemptions)
    monkeypatch.setattr(rounds, "_MOST", 6)
    found = rounds.taken([lambda: None] * 3, [], 1.0, fewest=3)
    assert len(found) == left
    assert rounds.times(found, 1).disturbed == (len(disturbed) == 4)
