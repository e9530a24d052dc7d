"""Seconds by step: whose they are, and who counts them."""

from __future__ import annotations

import threading
import time

import pytest

from composite.compiler import account
from composite.compiler.account import Account


class _Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    return _Clock(monkeypatch)


def test_a_step_in_another_counts_for_itself(clock: _Clock) -> None:
    with account.collected() as own, account.step("outer"):
        clock.pass_by(1)
        with account.step("inner"):
            clock.pass_by(2)
            with account.step("innermost"):
                clock.pass_by(4)
        clock.pass_by(8)
        with account.step("inner"):
            clock.pass_by(16)
    assert own == {"innermost": 4, "inner": 18, "outer": 9}


def test_what_raises_has_taken_its_time(clock: _Clock) -> None:
    def fail() -> None:
        with account.step("outer"), account.step("inner"):
            clock.pass_by(2)
            raise KeyError

    with account.collected() as own, pytest.raises(KeyError):
        fail()
    assert own == {"inner": 2, "outer": 0}


def test_what_another_process_did_is_not_the_time_of_who_waits_for_it(clock: _Clock) -> None:
    with account.collected() as own, account.step("queue"):
        clock.pass_by(5)
        account.note({"read": 1, "generate": 3})
    assert own == {"read": 1, "generate": 3, "queue": 1}


def test_steps_apart_are_counted_once_by_whoever_notes_them(clock: _Clock) -> None:
    """As the compiler's are, where it is in the process of its client."""
    with account.collected() as own, account.step("queue"):
        clock.pass_by(1)
        with account.apart() as steps, account.step("read"):
            clock.pass_by(4)
        account.note(steps)
    assert own == {"read": 4, "queue": 1}
    assert steps == {"read": 4}


def test_the_process_counts_the_steps_of_all_threads() -> None:
    before = account.PROCESS.read()

    def run() -> None:
        with account.step("of a thread"):
            time.sleep(0.01)

    threads = [threading.Thread(target=run) for _ in range(2)]
    with account.collected() as own:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not own
    since = account.PROCESS.read() - before
    assert list(since) == ["of a thread"]
    assert since["of a thread"] >= 0.02


def test_text_has_the_steps_that_took_time_in_order() -> None:
    own = Account({"read": 0.021, "plan": 0.001, "generate": 1.5})
    assert str(own) == "read 0.02 s, generate 1.50 s"
    assert own.read(reset=True) == {"read": 0.021, "plan": 0.001, "generate": 1.5}
    assert str(own) == "" and not own
