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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from composite.ops.registry import OPS
from composite.saving import contents

SUFFIX = ".keras"
_CONFIG = "config.json"
_REGISTERED = "composite>"  # what Keras calls an op, before its name


def composites(path: Path) -> dict[str, set[str]]:
    """The ops that a file names, with their versions in this process, which wrote it."""
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read(_CONFIG))
    found = {}
    for name in _registered(config):
        if (op := OPS.current(name)) is not None:
            found[name] = {op.digest}
    return found


def add(folder: Path, path: Path) -> None:
    """Puts what `Contents.write` and `contents.copied` left in a folder into a file."""
    with zipfile.ZipFile(path, "a") as archive:
        for file in sorted((folder / contents.FOLDER).rglob("*")):
            archive.write(file, file.relative_to(folder).as_posix())


def extracted(path: Path) -> Path:
    """A folder with what `add` put into a file; it is there as long as this process.

    FileNotFoundError where there is no file, ValueError for one that is none of Keras'.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    folder = Path(tempfile.mkdtemp(prefix="composite-keras-"))  # for this user alone
    atexit.register(_remove, folder, os.getpid())
    try:
        with zipfile.ZipFile(path) as archive:
            own = [one for one in archive.namelist() if Path(one).is_relative_to(contents.FOLDER)]
            archive.extractall(folder, own)  # which leaves no path outside of the folder
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is damaged ({error}): save the model again") from error
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not at the end of a child, while its parent goes on
        shutil.rmtree(folder, ignore_errors=True)


def _registered(config: Any) -> Iterator[str]:
    """The names of all that Keras registered for this package."""
    if isinstance(config, dict):
        name = config.get("registered_name")
        if isinstance(name, str) and name.startswith(_REGISTERED):
            yield name.removeprefix(_REGISTERED)
        for value in config.values():
            yield from _registered(value)
    elif isinstance(config, list):
        for value in config:
            yield from _registered(value)
