"""The disk cache of compiled kernels.

Loading an entry runs native code. So the folder must belong to the user, and nobody else may write
to it; files are named by the hashes of their contents, read through descriptors that follow no
links, and checked against their hashes before they are used. Several processes may share the
folder: files are created by rename, so they are never incomplete, and two processes that make the
same entry write the same bytes. If the folder cannot be written to (it is full, read-only, another
user's, or missing), entries are kept in the memory of this process. Entries of a read-only folder
are used.

    <root>/v1/records/<key>     hash of the rest, newline, a kernel record (NodeDef)
    <root>/v1/objects/<hash>.so the library that the record names
    <root>/v1/timings/<key>-<machine>  like a record: measured times, which are not part of an entry
    <root>/v1/refusals/<key>    like a record: why there is no such entry
    <root>/v1/claims            empty; a process locks a byte of it while it makes an entry

`key` makes the keys. This module reads nothing of a record but the hash of its library.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from composite.binding.log import logger
from composite.kernels import memory
from composite.kernels.claims import Claims

ENVIRONMENT = "COMPOSITE_CACHE_DIR"
LIMIT = 512 << 20  # bytes; a dense kernel's library is about 20 KB
LARGEST = 64 << 20  # of one file: the cache never writes a larger one
_ABANDONED = 3600  # seconds after which a temporary file is abandoned

_FOLDERS = ("records", "objects", "timings", "refusals")

T = TypeVar("T")

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(Exception):  # noqa: N818 - says what the folder is
    """The folder must not be used as a cache of native code; the message says why."""


def default_root() -> Path:
    """COMPOSITE_CACHE_DIR, or composite in XDG_CACHE_HOME, or ~/.cache/composite.

    NotADirectoryError if that needs a home folder and there is none.
    """
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return _absolute(chosen)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if shared.startswith("/"):  # the specification says that a relative path is ignored
        return Path(shared) / "composite"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise NotADirectoryError(f"{error}; {ENVIRONMENT} can name a folder") from None
    return home / ".cache" / "composite"


@functools.cache
def _absolute(path: str) -> Path:
    """The absolute path of a folder, resolved once: the working folder may change later."""
    return Path(path).absolute()


def open_default() -> Cache:
    """The user's cache, one object per process; in memory if no folder can be trusted."""
    try:
        return _opened(default_root())
    except NotADirectoryError as error:
        return _in_memory(str(error))


@functools.cache
def _opened(root: Path) -> Cache:
    try:
        return Cache(root)
    except (Untrusted, OSError) as error:
        return _in_memory(str(error))


@functools.cache
def _in_memory(why: str) -> Cache:
    logger.warning("kernels are kept in memory, for this process alone: %s", why)
    return Cache(None)


class Cache:
    """A cache folder, and in memory what it does not take. Without a folder, all is in memory.

    Untrusted if somebody else may write to the folder, OSError if it cannot be created.
    """

    def __init__(self, root: Path | None, limit: int = LIMIT) -> None:
        self.root = None if root is None else root / "v1"
        self._memory = memory.Entries()
        self._is_told = root is None  # that something is kept in memory
        self._limit = limit
        if self.root is not None:
            _prepare(self.root)
        self.claims = Claims(self.root)

    @property
    def is_empty(self) -> bool:
        """Whether there is no entry of any version of the compiler."""
        if self.root is None:
            return True
        try:
            with os.scandir(self.root / "records") as found:
                return next(found, None) is None
        except OSError:
            return True

    def load(self, key: str) -> tuple[bytes, Path] | None:
        """The record of an entry and the path of its library, both checked; None if it is missing.

        A damaged entry is logged, removed and treated as missing.
        """
        if (kept := self._memory.load(key)) is not None:
            return kept
        return None if self.root is None else self._load(self.root, key)

    def _load(self, root: Path, key: str) -> tuple[bytes, Path] | None:
        try:
            record = _hashed(root / "records", key)
            if record is None:
                return None
            library_hash, _, content = record.partition(b"\n")
            name = library_hash.decode() + ".so"
            library = read(root / "objects", name)
            if library is None:  # the library was trimmed; records are small and are kept longer
                logger.info("the library of cache entry %s is gone: it is made again", key)
                self.remove(key)
                return None
            if hashlib.sha256(library).hexdigest() != library_hash.decode():
                raise ValueError("its library has another hash")
        except (OSError, ValueError) as error:
            logger.warning("cache entry %s is damaged (%s): it is made again", key, error)
            self.remove(key)
            return None
        for path in (root / "records" / key, root / "objects" / name):
            _touch(path)
        return content, root / "objects" / name

    def store(self, key: str, record: bytes, library: bytes) -> Path:
        """Stores an entry, in memory if the folder does not take it. Returns its library's path.

        OSError if there is no memory.
        """
        path = self._written(lambda root: _write_entry(root, key, record, library))
        if path is None:
            return self._memory.store(key, record, library)
        self.trim()
        return path

    def put(self, key: str, record: bytes, library: bytes) -> None:
        """Stores an entry in the folder, which must exist. OSError if that fails."""
        assert self.root is not None, "it is in memory"
        _write_entry(self.root, key, record, library)

    def put_note(self, folder: str, name: str, content: bytes) -> None:
        """Stores timings or a refusal in the folder, which must exist. OSError as for `put`."""
        assert self.root is not None, "it is in memory"
        _write_hashed(self.root / folder, name, content)

    def has_note(self, folder: str, name: str) -> bool:
        """Whether the folder, which must exist, has timings or a refusal of this name."""
        assert self.root is not None, "it is in memory"
        return (self.root / folder / name).exists()

    def files(self, folder: str) -> list[Path]:
        """The complete files in a folder of a cache on disk, sorted by name."""
        assert self.root is not None, "it is in memory"
        try:
            return [path for path in _files(self.root / folder) if not path.name.startswith(".")]
        except OSError:  # there is no such folder
            return []

    def _written(self, write: Callable[[Path], T]) -> T | None:
        """The result of `write(root)`; None if the folder cannot be written to, which is logged."""
        if self.root is None:
            return None
        try:
            try:
                return write(self.root)
            except FileNotFoundError:  # somebody has removed the folder
                _prepare(self.root)
                return write(self.root)
        except (OSError, Untrusted) as error:
            if not self._is_told:
                self._is_told = True
                logger.warning("%s takes no kernels, new ones are in memory: %s", self.root, error)
            return None

    def remove(self, key: str) -> None:
        """Removes the record of an entry. Its library is removed when the cache is trimmed."""
        self._memory.remove(key)
        if self.root is not None:
            with contextlib.suppress(OSError):  # removed already, or read-only
                os.unlink(self.root / "records" / key)

    def load_timings(self, key: str, machine: str) -> bytes | None:
        """The times measured for an entry on a machine of this kind."""
        return self._load_note("timings", f"{key}-{machine}")

    def store_timings(self, key: str, machine: str, content: bytes) -> None:
        """Stores measured times beside the entry."""
        self._store_note("timings", f"{key}-{machine}", content)

    def load_refusal(self, key: str) -> bytes | None:
        """Why this key cannot have an entry; None if nothing is known."""
        return self._load_note("refusals", key)

    def store_refusal(self, key: str, content: bytes) -> None:
        """Stores why a key cannot have an entry."""
        self._store_note("refusals", key, content)

    def refusals(self) -> list[bytes]:
        """All undamaged refusals in the folder."""
        if self.root is None:
            return []
        notes = (self.load_refusal(path.name) for path in self.files("refusals"))
        return [note for note in notes if note is not None]

    def _load_note(self, folder: str, name: str) -> bytes | None:
        kept = self._memory.notes.get((folder, name))
        if kept is not None or self.root is None:
            return kept
        try:
            content = _hashed(self.root / folder, name)
        except (OSError, ValueError) as error:
            logger.warning("%s of cache entry %s are damaged: %s", folder, name, error)
            return None
        if content is not None:
            _touch(self.root / folder / name)
        return content

    def _store_note(self, folder: str, name: str, content: bytes) -> None:
        def write(root: Path) -> bool:
            _write_hashed(root / folder, name, content)
            return True

        if not self._written(write):
            self._memory.notes[folder, name] = content

    def trim(self) -> None:
        """Removes the least recently used files until the folder is within its size limit."""
        if self.root is None:
            return
        try:
            folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # removed meanwhile
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._trim(self.root)
        except BlockingIOError:
            return  # another process is trimming
        except OSError as error:
            logger.info("cache %s cannot be trimmed: %s", self.root, error)
        finally:
            os.close(folder)  # which releases the lock

    def _trim(self, root: Path) -> None:
        files = []
        for entry in (e for folder in _FOLDERS for e in _files(root / folder)):
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
        logger.info("cache %s holds %d MB: trimming", root, total >> 20)
        for _, size, entry in sorted(files):
            if total <= self._limit * 0.8:
                break
            entry.unlink(missing_ok=True)
            total -= size


def _prepare(root: Path) -> None:
    """Creates missing folders, and checks each one before anything is created in it."""
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_folder(root.parent)
    root.mkdir(mode=0o700, exist_ok=True)
    _check_folder(root)
    for name in _FOLDERS:
        with contextlib.suppress(OSError):  # read-only; existing entries can be used
            (root / name).mkdir(mode=0o700, exist_ok=True)
        if (root / name).exists():
            _check_folder(root / name)


def _touch(path: Path) -> None:
    """Updates the time of a file's last use: the least recently used files are trimmed first."""
    with contextlib.suppress(OSError):  # read-only, or trimmed meanwhile by another process
        os.utime(path, follow_symlinks=False)


def _hashed(folder: Path, name: str) -> bytes | None:
    content = read(folder, name)
    return None if content is None else unhashed(content, folder.name)


def unhashed(content: bytes, folder: str) -> bytes:
    """The content of a file after its leading hash. ValueError if the hash does not match."""
    digest, separator, rest = content.partition(b"\n")
    if not separator or hashlib.sha256(rest).hexdigest().encode() != digest:
        raise ValueError(f"it is in {folder}, and has another hash")
    return rest


def _write_entry(root: Path, key: str, record: bytes, library: bytes) -> Path:
    name = hashlib.sha256(library).hexdigest()
    path = _write(root / "objects", f"{name}.so", library)
    _write_hashed(root / "records", key, name.encode() + b"\n" + record)
    return path


def _write_hashed(folder: Path, name: str, content: bytes) -> None:
    digest = hashlib.sha256(content).hexdigest().encode()
    _write(folder, name, digest + b"\n" + content)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def _trusted() -> tuple[int, int]:
    """The user IDs whose files may be loaded as native code, as in CheckedFile::CheckOwner."""
    return os.geteuid(), 0


def _check_folder(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise Untrusted(f"{folder} is not a folder (links are not followed)")
    if status.st_uid not in _trusted():
        raise Untrusted(f"{folder} belongs to user {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Untrusted(f"others may write to {folder}: chmod go-w {folder}")


def read(folder: Path, name: str) -> bytes | None:
    """The bytes of a file; None if it is missing. ValueError unless it is regular and trusted."""
    try:
        descriptor = os.open(folder / name, _READ)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in _trusted():
            raise ValueError(f"{name} is not a regular file of this user")
        if status.st_size > LARGEST:
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
