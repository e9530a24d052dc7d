"""The disk cache of compiled kernels.

Loading an entry runs native code, so the folder is the user's own and nobody else may write to it,
names are the hashes of contents, files are read through descriptors that follow no links, and every
byte is checked against its hash before it is used. Several processes may share the folder: a file
appears complete, by rename, or not at all, and two that make the same entry make the same bytes.
What the folder does not take (it is full, read-only, another user's, or there is none) is kept in
memory, for this process; what a read-only folder has is used.

    <root>/v1/records/<key>     hash of the rest, newline, a kernel record (NodeDef)
    <root>/v1/objects/<hash>.so the library that the record names
    <root>/v1/timings/<key>-<machine>  like a record: measured times, which are no part of an entry
    <root>/v1/refusals/<key>    like a record: why there is no such entry
    <root>/v1/claims            empty; its bytes are locked by who makes an entry

What goes into a key is in `key`. Nothing here knows what a record means, except its library's hash.
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
LARGEST = 64 << 20  # of one file: what is larger was not written by us
_ABANDONED = 3600  # seconds after which a temporary file is nobody's any more

_FOLDERS = ("records", "objects", "timings", "refusals")

T = TypeVar("T")

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(Exception):  # noqa: N818 - says what the folder is
    """The folder cannot be a cache of native code; the message says why."""


def default_root() -> Path:
    """COMPOSITE_CACHE_DIR, or composite in XDG_CACHE_HOME, or ~/.cache/composite.

    NotADirectoryError where that depends on a home folder, and there is none.
    """
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return _absolute(chosen)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if shared.startswith("/"):  # a relative one is to be ignored, says its specification
        return Path(shared) / "composite"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise NotADirectoryError(f"{error}; {ENVIRONMENT} can name a folder") from None
    return home / ".cache" / "composite"


@functools.cache
def _absolute(path: str) -> Path:
    """The folder that a path first stood for: the working folder may be another one later."""
    return Path(path).absolute()


def open_default() -> Cache:
    """The user's cache, the same for all who ask; one in memory where no folder can be trusted."""
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
    """A cache folder, and what it does not take; without a folder, all is kept in memory.

    Untrusted if somebody else may write to the folder, OSError if there can be none.
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
        """Whether there is no entry, of any compiler."""
        if self.root is None:
            return True
        try:
            with os.scandir(self.root / "records") as found:
                return next(found, None) is None
        except OSError:
            return True

    def load(self, key: str) -> tuple[bytes, Path] | None:
        """The record of an entry and the path of its library, both checked; None if there is none.

        A damaged entry is removed, with a line in the log, and counts as missing.
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
        for path in (root / "records" / key, root / "objects" / name):
            _touch(path)
        return content, root / "objects" / name

    def store(self, key: str, record: bytes, library: bytes) -> Path:
        """Keeps an entry, in memory if the folder does not take it; returns its library's path.

        OSError if there is no memory either.
        """
        path = self._written(lambda root: _write_entry(root, key, record, library))
        if path is None:
            return self._memory.store(key, record, library)
        self.trim()
        return path

    def put(self, key: str, record: bytes, library: bytes) -> None:
        """Keeps an entry in the folder, which there is. OSError where it does not take it."""
        assert self.root is not None, "it is in memory"
        _write_entry(self.root, key, record, library)

    def put_note(self, folder: str, name: str, content: bytes) -> None:
        """Keeps timings or a refusal in the folder, which there is. OSError as `put`."""
        assert self.root is not None, "it is in memory"
        _write_hashed(self.root / folder, name, content)

    def has_note(self, folder: str, name: str) -> bool:
        """Whether the folder, which there is, has timings or a refusal of this name."""
        assert self.root is not None, "it is in memory"
        return (self.root / folder / name).exists()

    def files(self, folder: str) -> list[Path]:
        """What is in one of the cache's folders, which there is, by name; nothing half-written."""
        assert self.root is not None, "it is in memory"
        try:
            return [path for path in _files(self.root / folder) if not path.name.startswith(".")]
        except OSError:  # there is no such folder
            return []

    def _written(self, write: Callable[[Path], T]) -> T | None:
        """What `write(root)` returns; None, with a line in the log, if the folder takes nothing."""
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
        """Removes an entry's record; its library goes when the cache is trimmed."""
        self._memory.remove(key)
        if self.root is not None:
            with contextlib.suppress(OSError):  # gone already; or read-only, and hidden by memory
                os.unlink(self.root / "records" / key)

    def load_timings(self, key: str, machine: str) -> bytes | None:
        """What was measured for an entry on a machine of this kind."""
        return self._load_note("timings", f"{key}-{machine}")

    def store_timings(self, key: str, machine: str, content: bytes) -> None:
        """Keeps what was measured, beside the entry and not part of it."""
        self._store_note("timings", f"{key}-{machine}", content)

    def load_refusal(self, key: str) -> bytes | None:
        """Why there is no entry of this key, and never will be."""
        return self._load_note("refusals", key)

    def store_refusal(self, key: str, content: bytes) -> None:
        """Keeps why there is no entry."""
        self._store_note("refusals", key, content)

    def refusals(self) -> list[bytes]:
        """All that `store_refusal` keeps in the folder, as far as it is whole."""
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
        """Removes what was used longest ago, until the folder is within its bound."""
        if self.root is None:
            return
        try:
            folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # it was removed
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._trim(self.root)
        except BlockingIOError:
            return  # another process is at it
        except OSError as error:
            logger.info("cache %s cannot be trimmed: %s", self.root, error)
        finally:
            os.close(folder)  # and with it the lock

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
    """Makes the folders that are missing, and checks each before anything is made in it."""
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_folder(root.parent)
    root.mkdir(mode=0o700, exist_ok=True)
    _check_folder(root)
    for name in _FOLDERS:
        with contextlib.suppress(OSError):  # read-only; what there is may serve
            (root / name).mkdir(mode=0o700, exist_ok=True)
        if (root / name).exists():
            _check_folder(root / name)


def _touch(path: Path) -> None:
    """Notes that a file was used: those that were used longest ago go first."""
    with contextlib.suppress(OSError):  # read-only, or trimmed meanwhile by another process
        os.utime(path, follow_symlinks=False)


def _hashed(folder: Path, name: str) -> bytes | None:
    content = read(folder, name)
    return None if content is None else unhashed(content, folder.name)


def unhashed(content: bytes, folder: str) -> bytes:
    """What a file of a folder holds behind its hash. ValueError where that is another one."""
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
    """Whose files may be native code here, as CheckedFile::CheckOwner in the runtime has it."""
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
    """A file's bytes; None if there is none. ValueError for anything but our own regular file."""
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
