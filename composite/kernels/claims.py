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
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from composite.binding.log import logger

PATIENCE = 600.0  # seconds after which a claim counts no more: its process may have been stopped
_NAME = "claims"
_OFFSETS = 1 << 62


class Claimed(Exception):  # noqa: N818 - not an error
    """Another process makes the entry, or another thread."""


class Claims:
    """The claims of a folder; without one, or where it holds no locks, those of this process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._file: int | None = None
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
        file = self._opened()
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

    def _opened(self) -> int | None:
        # The file stays open: to close it would release all locks that the process has on it.
        if self._file is None and self._folder is not None:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                self._file = os.open(self._folder / _NAME, flags, 0o600)
            except OSError as error:
                self._do_without(error)
            else:
                weakref.finalize(self, os.close, self._file)
        return self._file

    def _do_without(self, error: OSError) -> None:
        logger.info("processes that share %s may make a kernel twice: %s", self._folder, error)
        self._folder = self._file = None
