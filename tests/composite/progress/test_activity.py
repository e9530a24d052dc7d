"""What calls tell of themselves: events, who gets them, and what a listener's error does."""

from __future__ import annotations

import threading
import time

import pytest

from composite.progress import activity, making
from composite.progress.event import ProgressEvent


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_events_have_what_is_done_and_what_is_expected(clock: list[float]) -> None:
    told: list[ProgressEvent] = []
    with activity.told("bake", told.append):
        activity.step("import")
        clock[0] += 5
        activity.part("bread", 0, 4)
        activity.part("bread", 0, 4)  # nothing new
        clock[0] += 2
        activity.step("check")
        clock[0] += 1
        activity.part("cake", 1, 4)
        activity.part("cake", 4, 4)
        activity.step("measure", 7.0)
    assert told == [
        ProgressEvent("import"),
        ProgressEvent("import", "bread", 0, 4, 5.0),
        ProgressEvent("check", "bread", 0, 4, 7.0),
        ProgressEvent("check", "cake", 1, 4, 8.0, expected=9.0),
        ProgressEvent("check", "cake", 4, 4, 8.0),
        ProgressEvent("measure", "cake", 4, 4, 8.0, expected=7.0),
    ]


def test_what_was_known_before_is_no_measure_of_speed(clock: list[float]) -> None:
    told: list[ProgressEvent] = []
    with activity.told("tune", told.append):
        activity.part("", 60, 64)
        clock[0] += 10
        activity.part("", 61, 64)
    assert [event.expected for event in told] == [None, 30.0]


def test_a_call_inside_of_another_tells_it() -> None:
    outer: list[ProgressEvent] = []
    inner: list[ProgressEvent] = []
    with activity.told("outer", outer.append):
        with activity.told("wait"):
            activity.step("compile")
        with activity.told("wait", inner.append):
            activity.step("check")
        activity.step("measure")
    activity.step("after")
    activity.part("after", 1, 2)
    assert [event.step for event in outer] == ["compile", "measure"]
    assert [event.step for event in inner] == ["check"]


def test_other_threads_are_at_nothing() -> None:
    told: list[ProgressEvent] = []
    with activity.told("call", told.append):
        thread = threading.Thread(target=activity.step, args=("elsewhere",))
        thread.start()
        thread.join()
    assert told == []


def test_an_error_of_the_listener_is_raised_by_the_call_and_not_in_what_is_made() -> None:
    def listener(event: ProgressEvent) -> None:
        raise ValueError(event.step)

    with activity.told("call", listener):
        activity.step("compile")  # raises nothing
        activity.step("check")  # and is not told
        with pytest.raises(ValueError, match="^compile$"):
            activity.part("next", 1, 2)
        activity.part("next", 2, 2)
    with pytest.raises(ValueError, match="^last$"), activity.told("call", listener):
        activity.step("last")


def test_an_interruption_by_the_listener_comes_at_once() -> None:
    def listener(event: ProgressEvent) -> None:
        raise KeyboardInterrupt

    with activity.told("call", listener), pytest.raises(KeyboardInterrupt):
        activity.step("compile")
    activity.step("compile")  # nobody listens any more


def test_who_waits_is_told_of_the_kernel_in_hand() -> None:
    told: list[ProgressEvent] = []
    may_go_on, is_made = threading.Event(), threading.Event()

    def make() -> None:
        with making.kernel("Relu"):
            activity.step("compile")
            is_made.set()
            assert may_go_on.wait(60)
        making.count()

    with activity.told("wait", told.append) as waiting:
        watch = making.Watch()
        watch.report(waiting, 2)
        thread = threading.Thread(target=make)
        thread.start()
        assert is_made.wait(60)
        watch.report(waiting, 2)
        may_go_on.set()
        thread.join()
        with pytest.raises(ZeroDivisionError), making.kernel("Tanh"):
            assert 1 / 0
        watch.report(waiting, 1)
        watch.report(waiting, 0)
        making.Watch().report(waiting, 0)  # of one that need not wait
    found = [event[:4] for event in told]
    elsewhere = "wait", "kernels of other processes"
    assert found == [
        *((*elsewhere, 0, 2), ("compile", "Relu", 0, 2), (*elsewhere, 1, 2), ("ready", "", 1, 1))
    ]
