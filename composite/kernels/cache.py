"""The disk cache of compiled kernels.

Loading an entry runs native code, so the folder is the user's own and nobody else may write to it,
names are the hashes of contents, files are read through descriptors that follow no links, and every
byte is checked against its hash before it is used. Several processes may share the folder: a file
appears complete, by rename, or not at all, and two that make the same entry make the same bytes.

    <root>/v1/records/<key>     hash of the rest, newline, a kernel record (NodeDef)
    <root>/v1/objects/<hash>.so the library that the record names
    <root>/v1/timings/<key>-<machine>  like a record: measured times, which are no part of an entry

What goes into a key is in `key`. Nothing here knows what a record means, except its library's hash.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import stat
import tempfile
import time
from pathlib import Path

from composite.binding.log import logger

ENVIRONMENT = "COMPOSITE_CACHE_DIR"
LIMIT = 512 << 20  # bytes; a dense kernel's library is about 20 KB
_LARGEST = 64 << 20  # of one file: what is larger was not written by us
_ABANDONED = 3600  # seconds after which a temporary file is nobody's any more

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(Exception):  # noqa: N818 - says what the folder is
    """The folder cannot be a cache of native code; the message says why."""


def default_root() -> Path:
    """COMPOSITE_CACHE_DIR, or ~/.cache/composite."""
    chosen = os.environ.get(ENVIRONMENT)
    return Path(chosen) if chosen else Path("~/.cache/composite").expanduser()


def open_default() -> Cache:
    """The user's cache; a private one for this process where that is not to be trusted."""
    root = default_root()
    try:
        return Cache(root)
    except (Untrusted, OSError) as error:
        return _private(root, error)


def _private(root: Path, error: Exception) -> Cache:
    private = tempfile.TemporaryDirectory(prefix="composite-")
    logger.warning("no kernel cache in %s: %s; this process uses %s", root, error, private.name)
    cache = Cache(Path(private.name))
    cache.owned = private  # removed with the cache object
    return cache


class Cache:
    """A cache folder. Untrusted or OSError when it cannot be created or is not private."""

    def __init__(self, root: Path, limit: int = LIMIT) -> None:
        self.root = root / "v1"
        self.owned: tempfile.TemporaryDirectory[str] | None = None
        self._spare: Cache | None = None  # what this process keeps when the folder takes no more
        self._limit = limit
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_folder(root)
        for name in (".", "records", "objects", "timings"):
            (self.root / name).mkdir(mode=0o700, exist_ok=True)
            _check_folder(self.root / name)

    def load(self, key: str) -> tuple[bytes, Path] | None:
        """The record of an entry and the path of its library, both checked; None if there is none.

        A damaged entry is removed, with a line in the log, and counts as missing.
        """
        try:
            record = self._hashed("records", key)
            if record is None:
                return None
            library_hash, _, content = record.partition(b"\n")
            name = library_hash.decode() + ".so"
            library = _read(self.root / "objects", name)
            if library is None:  # trimmed: records are small and outlive their libraries
                logger.info("the library of cache entry %s is gone: it is made again", key)
                self.remove(key)
                return None
            if hashlib.sha256(library).hexdigest() != library_hash.decode():
                raise ValueError("its library has another hash")
        except (OSError, ValueError) as error:
            logger.warning("cache entry %s is damaged (%s): it is made again", key, error)
            self.remove(key)
            return None
        for path in (self.root / "records" / key, self.root / "objects" / name):
            with contextlib.suppress(FileNotFoundError):  # another process trimmed it meanwhile
                os.utime(path, follow_symlinks=False)
        return content, self.root / "objects" / name

    def store(self, key: str, record: bytes, library: bytes) -> Path:
        """Writes an entry; returns the path of its library.

        Where the folder takes no more (a full disk, a read-only one) the entry goes to a private
        folder, for this process, which would have compiled for nothing. OSError if that is full.
        """
        name = hashlib.sha256(library).hexdigest()
        try:
            path = _write(self.root / "objects", f"{name}.so", library)
            self._write_hashed("records", key, name.encode() + b"\n" + record)
        except OSError as error:
            if self.owned is not None:
                raise
            self._spare = self._spare or _private(self.root.parent, error)
            return self._spare.store(key, record, library)
        self.trim()
        return path

    def remove(self, key: str) -> None:
        """Removes an entry's record; its library goes when the cache is trimmed."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.root / "records" / key)

    def load_timings(self, key: str, machine: str) -> bytes | None:
        """What was measured for an entry on a machine of this kind."""
        try:
            return self._hashed("timings", f"{key}-{machine}")
        except (OSError, ValueError) as error:
            logger.warning("timings of cache entry %s are damaged (%s): measured again", key, error)
            return None

    def store_timings(self, key: str, machine: str, content: bytes) -> None:
        """Keeps what was measured, beside the entry and not part of it, where there is room."""
        try:
            self._write_hashed("timings", f"{key}-{machine}", content)
        except OSError as error:
            logger.warning("timings of cache entry %s are not kept: %s", key, error)

    def trim(self) -> None:
        """Removes what was used longest ago, until the folder is within its bound."""
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(folder)
            return  # another process is at it
        try:
            self._trim()
        finally:
            os.close(folder)  # and with it the lock

    def _trim(self) -> None:
        files = []
        for entry in (e for f in ("objects", "records", "timings") for e in _files(self.root / f)):
            try:
                status = entry.lstat()
            except FileNotFoundError:
                continue  # another process has renamed or removed it
            if entry.name.startswith(".") and time.time() - status.st_mtime > _ABANDONED:
                entry.unlink(missing_ok=True)
            else:
                files.append((status.st_mtime, status.st_size, entry))
        total = sum(size for _, size, _ in files)
        if total <= self._limit:
            return
        logger.info("cache %s holds %d MB: trimming", self.root, total >> 20)
        for _, size, entry in sorted(files):
            if total <= self._limit * 0.8:
                break
            entry.unlink(missing_ok=True)
            total -= size

    def _hashed(self, folder: str, name: str) -> bytes | None:
        content = _read(self.root / folder, name)
        if content is None:
            return None
        digest, separator, rest = content.partition(b"\n")
        if not separator or hashlib.sha256(rest).hexdigest().encode() != digest:
            raise ValueError(f"{folder[:-1]} has another hash")
        return rest

    def _write_hashed(self, folder: str, name: str, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest().encode()
        _write(self.root / folder, name, digest + b"\n" + content)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def _check_folder(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise Untrusted(f"{folder} is not a folder (links are not followed)")
    if status.st_uid != os.geteuid():
        raise Untrusted(f"{folder} belongs to user {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Untrusted(f"others may write to {folder}: chmod go-w {folder}")


def _read(folder: Path, name: str) -> bytes | None:
    """A file's bytes; None if there is none. ValueError for anything but our own regular file."""
    try:
        descriptor = os.open(folder / name, _READ)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise ValueError(f"{name} is not a regular file of this user")
        if status.st_size > _LARGEST:
            raise ValueError(f"{name} has {status.st_size} bytes")
        return file.read()


def _write(folder: Path, name: str, content: bytes) -> Path:
    temporary = folder / f".{secrets.token_hex(8)}"
    descriptor = os.open(temporary, _CREATE, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.rename(temporary, folder / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return folder / name
