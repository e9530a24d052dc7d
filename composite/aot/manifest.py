"""manifest.json of a built library: what it was built for and what it holds.

Read before anything of the folder is run or mapped. Holds no time, no host, and no path but the
names of files that lie beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.aot import inputs
from composite.binding import json_text, tensorflow_version
from composite.compiler.emit.library import LibraryKernel, LibraryOp

FORMAT = 2  # composite/runtime/api/library_folder.cc has the same number
NAME = inputs.MANIFEST


def text(
    name: str,
    ops: Sequence[LibraryOp],
    kernels: Sequence[LibraryKernel],
    files: dict[str, bytes],
    made_of: Mapping[str, Any] | None = None,
) -> str:
    """The manifest of library `name`, whose files have these contents.

    made_of: what `inputs.described` says of a library that is built from a file.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "tensorflow": str(tf.__version__),
        "files": {file: hashlib.sha256(files[file]).hexdigest() for file in sorted(files)},
        "ops": [
            {
                "python_name": op.python_name,
                "op": op.op_name,
                "digest": op.digest,
                "doc": op.doc,
                "own_gradient": op.own_gradient,
            }
            for op in ops
        ],
        "kernels": [
            {"name": k.name, "op": k.op_name, "record": k.record.hex(), **k.facts} for k in kernels
        ],
    }
    if made_of is not None:
        content["inputs"] = made_of
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, checked for what can be checked without its files.

    FileNotFoundError, ValueError, or ImportError for another TensorFlow; one sentence each.
    """
    path = folder / NAME
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no built library: it has no {NAME}")
    try:
        content: dict[str, Any] = json_text.parsed(path.read_text(encoding="utf-8"))
        known = content["format"] == FORMAT
        version, files = str(content["tensorflow"]), list(content["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error!r}): build the library again") from error
    if not known:
        raise ValueError(f"{path} has format {content['format']}, not {FORMAT}: build it again")
    if not tensorflow_version.same_minor(version, str(tf.__version__)):
        raise ImportError(
            f"the library in {folder} was built for TensorFlow {version}, but {tf.__version__} is "
            "running: build it again with this TensorFlow"
        )
    for file in files:
        if os.path.basename(file) != file or file.startswith("."):
            raise ValueError(f"{path} names {file!r}, which is not a file of its own folder")
    return content


def open_checked(folder: Path, content: dict[str, Any], file: str) -> int:
    """A descriptor of a file whose hash is the manifest's; follows no link. The caller closes it.

    Checked before it is mapped: a library that is cut short kills the process that loads it.
    """
    try:
        descriptor = os.open(folder / file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise FileNotFoundError(
            f"{folder / file} cannot be opened ({error.strerror}): build the library again"
        ) from error
    digest = hashlib.sha256()
    while block := os.read(descriptor, 1 << 20):
        digest.update(block)
    if digest.hexdigest() != content["files"].get(file):
        os.close(descriptor)
        raise ValueError(
            f"{folder / file} is not what {NAME} says (its hash differs): it is damaged or was "
            "changed; build the library again"
        )
    return descriptor
