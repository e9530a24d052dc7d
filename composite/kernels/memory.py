"""Libraries in memory instead of a folder, under the names of this process's file descriptors.

The dynamic linker and the runtime (kernel_library.h) open a library by that name, whatever the
folders of the machine permit. Its content is sealed against changes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class _Entry(NamedTuple):
    record: bytes
    descriptor: int
    path: Path


class Entries:
    """The most recently used cache entries of this process, with timings and refusals."""

    MOST = 256  # a process may be limited to 1024 descriptors

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}  # the most recently used one comes last
        self.notes: dict[tuple[str, str], bytes] = {}

    def load(self, key: str) -> tuple[bytes, Path] | None:
        """The record of an entry and the path of its library."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry.record, entry.path

    def store(self, key: str, record: bytes, library: bytes) -> Path:
        """Stores an entry and returns the path of its library. OSError if there is no memory.

        An open library stays valid when its entry is removed.
        """
        self._entries.pop(key, None)  # a caller may be about to open the library
        self._entries[key] = entry = _Entry(record, *lasting(library))
        if len(self._entries) > self.MOST:
            os.close(self._entries.pop(next(iter(self._entries))).descriptor)
        return entry.path

    def remove(self, key: str) -> None:
        """Forgets an entry. Its library stays, since a caller may be about to open it."""
        self._entries.pop(key, None)


@contextmanager
def file(content: bytes) -> Iterator[Path]:
    """A file with this content while the context lasts."""
    descriptor, path = lasting(content)
    try:
        yield path
    finally:
        os.close(descriptor)


def lasting(content: bytes) -> tuple[int, Path]:
    """The descriptor and the path of a file with this content, which exists until it is closed."""
    descriptor = os.memfd_create("composite-kernel", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(descriptor, 0o600)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, Path(f"/proc/self/fd/{descriptor}")
