"""A folder that is replaced as a whole: written beside, then exchanged in one step.

Whoever looks sees the former content or the new one. What a killed process leaves beside is
removed by the next one that writes there.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS)  # by the file system, by the kernel


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """An empty folder to write to, which takes the place of `target` unless the block raises.

    OSError, as the file system has it, when there is no room or no permission.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}."
    _remove_left_over(target.parent, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    lock = os.open(folder, os.O_RDONLY)  # held while the process lives: see _remove_left_over
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "made"
        made.mkdir(mode=0o755)
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
    made.rename(target)


def _remove_left_over(parent: Path, prefix: str) -> None:
    for folder in parent.glob(f"{prefix}*/"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            continue  # gone meanwhile, or not ours
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (folder / "made").is_dir():
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue  # its process is at work
        finally:
            os.close(lock)
