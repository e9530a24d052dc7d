"""Files in memory: readable by their path, for good or for a while, and never changed."""

from __future__ import annotations

import os

import pytest

from composite.kernels import memory


def test_a_file_for_a_while() -> None:
    with memory.file(b"content") as path:
        assert path.read_bytes() == b"content"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.stat().st_uid == os.geteuid()
    assert not path.exists() or path.read_bytes() != b"content"


def test_nobody_changes_it() -> None:
    descriptor, path = memory.lasting(b"content")
    with pytest.raises(PermissionError):
        os.pwrite(descriptor, b"C", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(descriptor, 0)
    assert path.read_bytes() == b"content"
    os.close(descriptor)


def test_two_of_one_content_are_two_files() -> None:
    with memory.file(b"a") as one, memory.file(b"a") as other:
        assert one != other


def memory_files() -> int:
    """How many the process has open; threads of other tests may open and close files of folders."""
    with os.scandir("/proc/self/fd") as descriptors:
        return sum(_link(one).startswith("/memfd:") for one in descriptors)


def _link(descriptor: os.DirEntry[str]) -> str:
    try:
        return os.readlink(descriptor.path)
    except FileNotFoundError:  # closed meanwhile
        return ""


def test_entries_are_bounded() -> None:
    """What was used last stays; what goes takes its descriptor along."""
    entries = memory.Entries()
    before = memory_files()
    for i in range(3 * entries.MOST):
        path = entries.store(f"k{i}", b"record", b"library %d" % i)
        assert path.read_bytes() == b"library %d" % i
        assert entries.load("k0") is not None
    assert memory_files() - before == entries.MOST
    assert entries.load("k1") is None
    first = entries.load("k0")
    assert first is not None
    assert first[1].read_bytes() == b"library 0"
