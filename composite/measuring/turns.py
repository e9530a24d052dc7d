"""Turns of threads: several kernels are made at the same time, but a kernel is measured alone.

Otherwise making kernels would take processors from a measurement. Measuring has priority, so that
finished kernels are used soon; a few of them wait while others are being made. Measurements are
prepared while other kernels are made. Only the threads of one process take turns with each other.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from composite.compiler import account
from composite.compiler_process import client

_WAITING = 4  # how many kernels may wait to be measured while others are made


class Turns:
    """The turns of a process's threads. A thread takes one at a time."""

    def __init__(self, most: int) -> None:
        """`most`: how many kernels are made at the same time."""
        self._most = most
        self._changed = threading.Condition()
        self._making = 0
        self._preparing = 0  # threads that wait for a turn
        self._waiting = 0  # threads that wait to measure
        self._is_measuring = False

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Holds a turn to make a kernel."""
        with account.step("turn"), self._changed:
            self._changed.wait_for(self._may_make)
            self._making += 1
        try:
            yield
        finally:
            self._end_making()

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """Holds a turn to prepare a measurement, which counts as making a kernel."""
        with account.step("turn"), self._changed:
            self._preparing += 1
            self._changed.wait_for(self._has_room)
            self._preparing -= 1
            self._making += 1
        try:
            yield
        finally:
            self._end_making()

    def _end_making(self) -> None:
        with self._changed:
            self._making -= 1
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return not self._is_measuring and self._making < self._most

    def _may_make(self) -> bool:
        if self._preparing or not self._has_room():
            return False
        return not self._waiting or (self._making > 0 and self._waiting < _WAITING)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Holds a turn to measure a kernel."""
        with account.step("turn"), self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._making and not self._is_measuring)
            self._waiting -= 1
            self._is_measuring = True
        try:
            yield
        finally:
            with self._changed:
                self._is_measuring = False
                self._changed.notify_all()


class _Process:
    """The turns of this process."""

    def __init__(self) -> None:
        self.turns = Turns(client.PROCESSES)

    def in_child(self) -> None:
        """Resets the turns in a forked child, which does not have the parent's threads."""
        self.turns = Turns(client.PROCESSES)


_process = _Process()
os.register_at_fork(after_in_child=_process.in_child)


def making() -> contextlib.AbstractContextManager[None]:
    """A turn to make a kernel."""
    return _process.turns.making()


def preparing() -> contextlib.AbstractContextManager[None]:
    """A turn to prepare the measurement of a kernel."""
    return _process.turns.preparing()


def measuring() -> contextlib.AbstractContextManager[None]:
    """A turn to measure a kernel."""
    return _process.turns.measuring()
