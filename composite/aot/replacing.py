"""A folder that is replaced as a whole: written beside, then exchanged in one step.

Whoever looks sees the former content or the new one. What a killed process leaves beside is
removed by the next one that writes there.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD
_STARTING = 60  # seconds after which an empty folder is not one that a process has just made
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS)  # by the file system, by the kernel


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Lets errors of the file system that name no file, as those of writing, name this one."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """An empty folder to write to, which takes the place of `target` unless the block raises.

    OSError, as the file system has it, when there is no room or no permission.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(target)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    lock = os.open(folder, os.O_RDONLY)  # held while the process lives: see _remove_left_over
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "made"
        made.mkdir(mode=0o755)
        with naming(target):
            yield made
        _exchange(made, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _exchange(made: Path, target: Path) -> None:
    """Moves the folder to its place; the former one, if any, is where it was then."""
    if not target.exists():
        made.rename(target)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    rename = getattr(libc, "renameat2", None)
    if rename is not None:
        paths = (_HERE, os.fsencode(made), _HERE, os.fsencode(target))
        if rename(*paths, ctypes.c_uint(_EXCHANGE)) == 0:
            return
        number = ctypes.get_errno()
        if number not in _UNSUPPORTED:
            raise OSError(number, os.strerror(number), str(target))
    former = made.with_name("former")
    target.rename(former)
    try:
        made.rename(target)
    except OSError:
        former.rename(target)
        raise


def _remove_left_over(target: Path) -> None:
    """Removes what killed processes have left; the former content comes back if it is gone."""
    left = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}")  # as mkdtemp names them
    for folder in [path for path in target.parent.iterdir() if left.fullmatch(path.name)]:
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
        except OSError:
            continue  # gone meanwhile, or not ours
        try:
            if not _is_own(lock):
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (folder / "former").is_dir() and not target.exists():
                os.rename("former", target, src_dir_fd=lock)  # killed between _exchange's renames
            if (folder / "made").is_dir() or time.time() - folder.stat().st_mtime > _STARTING:
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue  # its process is at work
        finally:
            os.close(lock)


def _is_own(folder: int) -> bool:
    """Whether nobody else can have put anything into a folder: where many may write, many do."""
    status = os.fstat(folder)
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
