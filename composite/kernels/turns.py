"""Whose turn it is: several kernels are made at once, and each is measured while none is made.

Else what is made would take processors from what is measured. Who measures goes before who makes,
so that kernels that are ready are used; a few of them wait while others are being made. What a
measurement needs is prepared while others are made. Threads of one process take turns; other
processes have turns of their own.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from composite.compiler import account
from composite.compiler_process import client

_WAITING = 4  # kernels that wait to be measured while others are made


class Turns:
    """The turns of a process's threads. A thread takes one at a time."""

    def __init__(self, most: int) -> None:
        """`most`: kernels that are made at once."""
        self._most = most
        self._changed = threading.Condition()
        self._making = 0
        self._preparing = 0  # that wait for it
        self._waiting = 0  # to measure
        self._is_measuring = False

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """While a kernel is made."""
        with account.step("turn"), self._changed:
            self._changed.wait_for(self._may_make)
            self._making += 1
        try:
            yield
        finally:
            self._end_making()

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """While the measurement of a kernel is prepared: it is one of those that are made."""
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
        """While a kernel is measured."""
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
        """Called in a process that was just forked: threads that are not here have no turn."""
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
