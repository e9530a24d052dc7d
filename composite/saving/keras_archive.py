"""Keras' own files, `model.keras`: zips, in which the libraries of the ops lie beside the model.

Keras leaves entries alone that it does not know. A layer whose Python code calls ops does not say
so in such a file; who loads it has that code, and so its ops.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from composite.ops.registry import OPS
from composite.saving import contents

SUFFIX = ".keras"
_CONFIG = "config.json"
_ALWAYS_BYTES = 1 << 20  # that may be unpacked of any file
_MOST_TIMES = 20  # as large: machine code is packed to a quarter, text to a tenth
_REGISTERED = "composite>"  # what Keras calls an op, before its name


def composites(path: Path) -> dict[str, set[str]]:
    """The ops that a file names, with their versions in this process, which wrote it."""
    named = ((name, OPS.current(name)) for name in _named(path))
    return {name: {op.digest} for name, op in named if op is not None}


def named_ops(path: Path) -> tuple[contents.Needed, ...]:
    """The ops that a file names, whoever wrote it, in the versions that it was written with."""
    return tuple(
        contents.Needed(
            name, str(one["digest"]), str(one.get("module", "")), str(one.get("place", ""))
        )
        for name, one in sorted(_named(path).items())
        if "digest" in one
    )


def missing(path: Path) -> list[contents.Needed]:
    """Those of `named_ops` of whose name this process has no op, in whatever version.

    A file of Keras means an op by its name.
    """
    return [one for one in named_ops(path) if OPS.current(one.op) is None]


def add(folder: Path, path: Path) -> None:
    """Puts what `Contents.write` and `contents.copied` left in a folder into a file."""
    with zipfile.ZipFile(path, "a") as archive:
        for file in sorted((folder / contents.FOLDER).rglob("*")):
            archive.write(file, file.relative_to(folder).as_posix())


def extracted(path: Path, *, native_code: bool) -> Path:
    """A folder with what `add` put into a file; it is there as long as this process.

    Without `native_code` what the model needs alone, and no library.

    FileNotFoundError where there is no file, ValueError for one that is none of Keras', or whose
    entries would become far larger than they are.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    folder = Path(tempfile.mkdtemp(prefix="composite-keras-"))  # for this user alone
    atexit.register(_remove, folder, os.getpid())
    try:
        with zipfile.ZipFile(path) as archive:
            own = [one for one in archive.infolist() if _is_wanted(one, native_code=native_code)]
            _require_ordinary(path, own)
            archive.extractall(folder, own)  # which leaves no path outside of the folder
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is damaged ({error}): save the model again") from error
    return folder


def _is_wanted(entry: zipfile.ZipInfo, *, native_code: bool) -> bool:
    path = Path(entry.filename)
    is_own = path.is_relative_to(contents.FOLDER)
    return is_own and (native_code or path.parent == contents.FOLDER)


def _require_ordinary(path: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    """ValueError for entries that are small in the file and large in a folder.

    An entry does not get larger than it says.
    """
    size = sum(one.file_size for one in entries)
    packed = sum(one.compress_size for one in entries)
    if size > max(_ALWAYS_BYTES, packed * _MOST_TIMES):
        raise ValueError(
            f"{path} would unpack {packed} bytes to {size}, far more than libraries of ops do: "
            "composite.save did not write it"
        )


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not at the end of a child, while its parent goes on
        shutil.rmtree(folder, ignore_errors=True)


def _named(path: Path) -> dict[str, dict[str, Any]]:
    """All that a file has of this package, by the name that Keras registered, with its config.

    ValueError for a file that is none of Keras'.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read(_CONFIG))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path} is no file of Keras, or is damaged ({error})") from error
    return dict(_registered(config))


def _registered(config: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(config, dict):
        name, own = config.get("registered_name"), config.get("config")
        if isinstance(name, str) and name.startswith(_REGISTERED):
            yield name.removeprefix(_REGISTERED), own if isinstance(own, dict) else {}
        for value in config.values():
            yield from _registered(value)
    elif isinstance(config, list):
        for value in config:
            yield from _registered(value)
