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

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class Entries:
    """Cache entries for the life of this process, each with a descriptor; timings beside them."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[bytes, Path]] = {}
        self.timings: dict[str, bytes] = {}

    def load(self, key: str) -> tuple[bytes, Path] | None:
        """The record of an entry and the path of its library."""
        return self._entries.get(key)

    def store(self, key: str, record: bytes, library: bytes) -> Path:
        """Keeps an entry; returns the path of its library. OSError if there is no memory."""
        _, path = lasting(library)
        self._entries[key] = (record, path)
        return path

    def remove(self, key: str) -> None:
        """Forgets an entry, whose library may be in use and stays."""
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
