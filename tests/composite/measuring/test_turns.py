"""Several kernels are made at once, and each is measured while none is made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from composite.measuring.turns import Turns

_SOON = 0.05  # seconds in which a thread that may go on does so


class Work:
    """A turn that a thread takes, and keeps until it is told to end."""

    def __init__(
        self, pool: ThreadPoolExecutor, turn: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._turn = turn
        self._has_begun, self._may_end = threading.Event(), threading.Event()
        self._done: Future[None] = pool.submit(self._run)

    def _run(self) -> None:
        with self._turn():
            self._has_begun.set()
            assert self._may_end.wait(30)

    def begins(self) -> bool:
        """Whether it has its turn, or gets it soon."""
        return self._has_begun.wait(_SOON)

    def must_begin(self) -> None:
        assert self._has_begun.wait(30)

    def end(self) -> None:
        self._may_end.set()
        self._done.result(30)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def test_no_more_are_made_at_once_than_may_be(pool: ThreadPoolExecutor) -> None:
    turns = Turns(2)
    first, second, third = (Work(pool, turns.making) for _ in range(3))
    works = [work for work in (first, second, third) if work.begins()]
    assert len(works) == 2
    (left,) = {first, second, third} - set(works)
    works[0].end()
    left.must_begin()
    works[1].end()
    left.end()


def test_nothing_is_made_while_one_is_measured(pool: ThreadPoolExecutor) -> None:
    turns = Turns(2)
    made = Work(pool, turns.making)
    made.must_begin()
    measured = [Work(pool, turns.measuring) for _ in range(2)]
    assert not any(work.begins() for work in measured)
    made.end()
    first = next(work for work in _until_one_begins(measured))
    (second,) = set(measured) - {first}
    assert not second.begins()
    other = Work(pool, turns.making)
    assert not other.begins()
    first.end()
    second.must_begin()  # before the one that is to be made
    assert not other.begins()
    second.end()
    other.must_begin()
    other.end()


def _until_one_begins(works: list[Work]) -> Iterator[Work]:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        yield from (work for work in works if work.begins())


def test_some_wait_to_be_measured_while_others_are_made_and_no_more(
    pool: ThreadPoolExecutor,
) -> None:
    turns = Turns(2)
    long = Work(pool, turns.making)
    long.must_begin()
    waiting = []
    for _ in range(4):
        short = Work(pool, turns.making)
        short.must_begin()
        short.end()
        waiting.append(Work(pool, turns.measuring))
        assert not waiting[-1].begins()
    last = Work(pool, turns.making)
    assert not last.begins()
    long.end()
    while waiting:
        first = next(_until_one_begins(waiting))
        first.end()
        waiting.remove(first)
    last.must_begin()
    last.end()


def test_a_measurement_is_prepared_while_one_is_made_and_before_another_is(
    pool: ThreadPoolExecutor,
) -> None:
    turns = Turns(2)
    first, second = (Work(pool, turns.making) for _ in range(2))
    first.must_begin()
    second.must_begin()
    prepared = Work(pool, turns.preparing)
    other = Work(pool, turns.making)
    assert not prepared.begins()
    assert not other.begins()
    first.end()
    prepared.must_begin()
    assert not other.begins()
    second.end()
    other.must_begin()
    measured = Work(pool, turns.measuring)
    other.end()
    assert not measured.begins()
    prepared.end()
    measured.must_begin()
    prepared = Work(pool, turns.preparing)
    assert not prepared.begins()
    measured.end()
    prepared.must_begin()
    prepared.end()


def test_one_that_fails_gives_its_turn_back(pool: ThreadPoolExecutor) -> None:
    turns = Turns(1)
    for turn in (turns.making, turns.preparing, turns.measuring):
        with pytest.raises(KeyError), turn():
            raise KeyError
    for turn in (turns.making, turns.preparing, turns.measuring):
        work = Work(pool, turn)
        work.must_begin()
        work.end()
