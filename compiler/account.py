"""How long the steps of some work take, in this process and for one work in it.

A step within another one counts for itself: its seconds are not the outer one's. Each thread counts
its own steps; the process's account has those of all threads. What another process did for this one
is told by it, see `note`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping


class Account(Mapping[str, float]):
    """Seconds by the names of steps, in the order in which they were first taken."""

    def __init__(self, seconds: Mapping[str, float] | None = None) -> None:
        self._lock = threading.Lock()
        self._seconds = dict(seconds or {})

    def __getitem__(self, step: str) -> float:
        return self._seconds[step]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._seconds))

    def __len__(self) -> int:
        return len(self._seconds)

    def __str__(self) -> str:
        """For a log: "read 0.02 s, plan 0.01 s", without steps of less than a hundredth."""
        return ", ".join(f"{step} {s:.2f} s" for step, s in self.items() if s >= _LEAST)

    def __sub__(self, earlier: Mapping[str, float]) -> Account:
        """What was spent since an earlier reading."""
        since = {step: s - earlier.get(step, 0.0) for step, s in self.items()}
        return Account({step: s for step, s in since.items() if s > 0})

    def add(self, step: str, seconds: float) -> None:
        """Count seconds of a step."""
        with self._lock:
            self._seconds[step] = self._seconds.get(step, 0.0) + seconds

    def read(self, *, reset: bool = False) -> Account:
        """Return what was counted until now; with `reset` it is counted from 0 afterwards."""
        with self._lock:
            found = Account(self._seconds)
            if reset:
                self._seconds.clear()
            return found

    def in_child(self) -> None:
        """Count in a process that was just forked: a thread that is not here may hold the lock."""
        self._lock = threading.Lock()


_LEAST = 0.005  # seconds that a log names


class _Here(threading.local):
    """What a thread counts for.

    Attributes:
        inner: seconds of steps within the step in hand.
        accounts: where its steps are counted.
    """

    def __init__(self) -> None:
        self.inner = 0.0
        self.accounts: tuple[Account, ...] = (PROCESS,)


PROCESS = Account()
"""All steps of this process."""

_here = _Here()


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Count the time in the context as that of a step of this thread."""
    outer, _here.inner = _here.inner, 0.0
    start = time.perf_counter()
    try:
        yield
    finally:
        whole = time.perf_counter() - start
        _count(name, whole - _here.inner)
        _here.inner = outer + whole


def note(steps: Mapping[str, float]) -> None:
    """Count steps that another process took while the step in hand waited for it."""
    for name, seconds in steps.items():
        _count(name, seconds)
        _here.inner += seconds


def _count(name: str, seconds: float) -> None:
    for one in _here.accounts:
        one.add(name, max(seconds, 0.0))


@contextlib.contextmanager
def collected() -> Iterator[Account]:
    """Give an account of the steps of this thread in the context; others count them too."""
    with _counting(Account(), _here.accounts) as own:
        yield own


@contextlib.contextmanager
def apart() -> Iterator[Account]:
    """The same of steps that count nowhere else: whoever is told them will `note` them."""
    inner = _here.inner
    with _counting(Account(), ()) as own:
        yield own
    _here.inner = inner


@contextlib.contextmanager
def _counting(own: Account, others: tuple[Account, ...]) -> Iterator[Account]:
    before, _here.accounts = _here.accounts, (*others, own)
    try:
        yield own
    finally:
        _here.accounts = before
