"""Claims on entries of a cache folder, so that only one thread of one process makes each entry.

A claim is a lock on one byte of a file, at an offset that follows from the key. The system releases
it when the process ends. Such locks exclude other processes; the threads of one process are
excluded by its list of claims. If the folder does not support locks (it is read-only, or its file
system has none), only threads of the same process are excluded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from composite.binding.log import logger

PATIENCE = 600.0  # seconds after which a claim is ignored: its process may have been stopped
_NAME = "claims"
_OFFSETS = 1 << 62

_opening = threading.Lock()
# Prevents a fork between opening the file and counting its user.
os.register_at_fork(
    before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_opening.release
)


class Claimed(Exception):  # noqa: N818 - not an error
    """Another process or thread is making the entry."""


class Claims:
    """The claims on a folder; only those of this process if it has no folder or no locks."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._file: int | None = None
        self._users = 0
        self._refused: dict[int, float] = {}  # by offset: since when another process has held it
        self._held: dict[tuple[int, int], object] = {}  # by process and offset

    @contextlib.contextmanager
    def claim(self, key: str) -> Iterator[None]:
        """Holds the claim on an entry while the context lasts. `key` is hex digits.

        Raises Claimed if another thread holds it, or if another process does and has been seen to
        for less than PATIENCE seconds.
        """
        offset = int(key, 16) % _OFFSETS
        held, own = (os.getpid(), offset), object()
        if self._held.setdefault(held, own) is not own:  # atomic: only one thread gets it
            raise Claimed("another thread makes this entry")
        try:
            with self._locked(offset):
                yield
        finally:
            del self._held[held]

    @contextlib.contextmanager
    def _locked(self, offset: int) -> Iterator[None]:
        """Holds the lock at an offset, if locks are supported; raises Claimed."""
        with self._opened() as file:
            if file is None or not self._lock(file, offset):
                yield
                return
            try:
                yield
            finally:
                fcntl.lockf(file, fcntl.LOCK_UN, 1, offset)

    def _lock(self, file: int, offset: int) -> bool:
        """Takes a lock. Returns whether locks are supported; raises Claimed."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            now = time.monotonic()
            if now - self._refused.setdefault(offset, now) < PATIENCE:
                raise Claimed("another process makes this entry") from None
            return False
        except OSError as error:
            self._do_without(error)
            return False
        self._refused.pop(offset, None)
        return True

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int | None]:
        """The descriptor of the file, open while any claim uses it; None if it cannot be opened.

        All claims share one descriptor, because closing another descriptor of the same file would
        release all locks of the process on it. It is closed when there are no claims, so that the
        folder can be remounted read-only.
        """
        with _opening:
            if self._users == 0:
                self._file = self._open()
            self._users += 1
            file = self._file
        try:
            yield file
        finally:
            with _opening:
                self._users -= 1
                if self._users == 0 and self._file is not None:
                    os.close(self._file)
                    self._file = None

    def _open(self) -> int | None:
        if self._folder is None:
            return None
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(self._folder / _NAME, flags, 0o600)
        except OSError as error:
            self._do_without(error)
            return None

    def _do_without(self, error: OSError) -> None:
        logger.info("processes that share %s may make a kernel twice: %s", self._folder, error)
        self._folder = None
