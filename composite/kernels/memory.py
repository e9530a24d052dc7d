"""Libraries that are no files of any folder: in memory, by the names of this process's descriptors.

The linker opens it by that name whatever the folders of the machine allow, and so does the runtime
(kernel_library.h). What is in it cannot be changed any more.
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
    """The cache entries of this process that were used last; timings and refusals beside them."""

    MOST = 256  # a process may have no more than 1024 descriptors

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}  # the one used last comes last
        self.notes: dict[tuple[str, str], bytes] = {}

    def load(self, key: str) -> tuple[bytes, Path] | None:
        """The record of an entry and the path of its library."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry.record, entry.path

    def store(self, key: str, record: bytes, library: bytes) -> Path:
        """Keeps an entry; returns the path of its library. OSError if there is no memory.

        Whoever has opened a library keeps it when its entry goes.
        """
        self._entries.pop(key, None)  # its library may be about to be opened
        self._entries[key] = entry = _Entry(record, *lasting(library))
        if len(self._entries) > self.MOST:
            os.close(self._entries.pop(next(iter(self._entries))).descriptor)
        return entry.path

    def remove(self, key: str) -> None:
        """Forgets an entry, whose library may be about to be opened and stays."""
        self._entries.pop(key, None)


@contextmanager
def file(content: bytes) -> Iterator[Path]:
    """A file of this content while the context lasts."""
    descriptor, path = lasting(content)
    try:
        yield path
    finally:
        os.close(descriptor)


def lasting(content: bytes) -> tuple[int, Path]:
    """A file of this content that is there until its descriptor is closed; that, and its path."""
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
