"""Which process makes which entry of a cache folder, so that only one makes each; and which thread.

A claim is a lock on one byte of a file, at an offset that the key gives. The system releases it
when its process ends. Such locks tell processes apart; of the threads of one, the claims that they
hold do. A folder that holds no locks (it is read-only, or its file system has none) tells threads
apart only.
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

PATIENCE = 600.0  # seconds after which a claim counts no more: its process may have been stopped
_NAME = "claims"
_OFFSETS = 1 << 62

_opening = threading.Lock()
# No process is forked between a file and its count.
os.register_at_fork(
    before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_opening.release
)


class Claimed(Exception):  # noqa: N818 - not an error
    """Another process makes the entry, or another thread."""


class Claims:
    """The claims of a folder; without one, or where it holds no locks, those of this process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._file: int | None = None
        self._users = 0
        self._refused: dict[int, float] = {}  # since when, by the offset
        self._held: dict[tuple[int, int], object] = {}  # by process and offset

    @contextlib.contextmanager
    def claim(self, key: str) -> Iterator[None]:
        """Holds the claim of an entry, whose key is hex digits.

        Raises Claimed if another thread holds it; or another process, for PATIENCE seconds from the
        first time on.
        """
        offset = int(key, 16) % _OFFSETS
        held, own = (os.getpid(), offset), object()
        if self._held.setdefault(held, own) is not own:  # one step: no two threads get it
            raise Claimed("another thread makes this entry")
        try:
            with self._locked(offset):
                yield
        finally:
            del self._held[held]

    @contextlib.contextmanager
    def _locked(self, offset: int) -> Iterator[None]:
        """Holds the lock of an offset, where there are locks; raises Claimed."""
        with self._opened() as file:
            if file is None or not self._lock(file, offset):
                yield
                return
            try:
                yield
            finally:
                fcntl.lockf(file, fcntl.LOCK_UN, 1, offset)

    def _lock(self, file: int, offset: int) -> bool:
        """Whether there is a lock now; raises Claimed."""
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
        """The file, which is open while some claim uses it, or None where there are no locks.

        The claims share one descriptor: to close another one of the same file would release all
        locks that the process has on it. Between claims, no file of the folder is open, so that
        the folder can be mounted read-only.
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
