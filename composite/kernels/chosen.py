"""The choices that a kernel is compiled with, from tuning databases.

The databases that a process consults are, in this order: those that `composite.use_tuned` named,
the last one first; that of COMPOSITE_TUNED; `tuned.json` in the folder of the kernel cache, where
`composite.tune` writes. The first that has a record of the kernel decides. A record is used only if
the compiler still writes the measured loops for both of its kernels, the default and the winner.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from composite.binding.log import logger
from composite.compiler.tvm.choices import Chosen
from composite.kernels import key as keys
from composite.kernels.cache import default_root
from composite.kernels.key import Identity
from composite.kernels.tuned import Damaged, Database, Record, Winner

ENVIRONMENT = "COMPOSITE_TUNED"
NAME = "tuned.json"
NOTHING: Chosen = MappingProxyType({})

_used: list[Path] = []
_read: dict[Path, tuple[tuple[int, int, int], Database]] = {}  # by the file's status


def use_tuned(path: str | os.PathLike[str]) -> None:
    """Makes this process compile kernels with the choices in a tuning database, from now on.

    Args:
        path: a file that `composite.tune` or `composite tune` wrote. It is read each time a kernel
            is compiled, so results may be added to it later.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a database, or one of another version.

    It applies to the whole process, because a kernel serves every call of its class. The
    environment variable COMPOSITE_TUNED does the same for a program that cannot be changed.
    """
    file = Path(path).absolute()
    Database.read(file)
    _used[:] = [file, *(one for one in _used if one != file)]


def default_file() -> Path:
    """The file that `composite.tune` writes, consulted last. OSError as for `default_root`."""
    return default_root() / NAME


def databases() -> list[Database]:
    """The databases that this process consults, in order, without damaged ones."""
    named = os.environ.get(ENVIRONMENT)
    files = [*_used, *([Path(named).absolute()] if named else [])]
    found = [_content(file) for file in files]
    with contextlib.suppress(OSError):  # there is no folder
        own = default_file()
        if own not in files and _is_own(own):
            found.append(_content(own))
    return [one for one in found if one is not None]


def _content(path: Path) -> Database | None:
    """The database of a file, read again if the file has changed."""
    try:
        status = path.stat()
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = _read.get(path)
        if known is None or known[0] != version:
            known = _read[path] = (version, Database.read(path))
    except (OSError, Damaged) as error:
        logger.warning("kernels are not as they were tuned: %s", error)
        return None
    return known[1]


def _is_own(path: Path) -> bool:
    """Whether a file exists that only this user can have written."""
    try:
        folder, file = path.parent.lstat(), path.lstat()
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISREG(file.st_mode) and all(
        status.st_uid == os.geteuid() and not status.st_mode & others for status in (folder, file)
    )


def winner(record: Record, machine: str) -> Winner | None:
    """The winner on this kind of machine, or on another kind if this one was not tuned."""
    if machine in record.winners:
        return record.winners[machine]
    found = sorted(record.winners.items(), key=lambda item: (-item[1].trials, item[0]))
    return found[0][1] if found else None


def choices_for(
    identity: Identity,
    target: Any,
    write: Callable[[Chosen], Any],
    consulted: Sequence[Database],
    known: Callable[[Chosen], bool] = lambda _: False,
) -> Chosen:
    """The choices to compile a kernel of this identity with; empty if it was not tuned.

    The first of the databases `consulted` that has a record of the kernel decides.
    `write(choices)` writes the loops (backend.Written). `known(choices)` says whether this compiler
    has made the kernel before, so that its loops need not be compared again.
    """
    key = identity.tuning_key(target.key)
    for database in consulted:
        record = database.records.get(key)
        best = winner(record, keys.machine()) if record is not None else None
        if record is None or best is None:
            continue
        choices = _choices(record, best)
        if not choices or known(choices):
            return choices
        if write(choices).digest == best.code and write(NOTHING).digest == best.measured.against:
            return choices
        logger.warning(
            "%s: the kernel was tuned for another version of the compiler; it is made as if it "
            "were not: tune it again",
            identity.op,
        )
        return NOTHING
    return NOTHING


def _choices(record: Record, best: Winner) -> Mapping[str, Any]:
    if best.code == best.measured.against:
        return NOTHING  # the default
    trial = record.trials.get(best.code)
    return NOTHING if trial is None else trial.choices
