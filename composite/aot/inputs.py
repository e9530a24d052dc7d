"""What a library was built from: files, versions and options, as hashes in its manifest.

As long as they are the same, building again gives the same bytes and is left out. This module
imports neither TensorFlow nor TVM, so that finding that out takes no time.

Not for: which files a module is made of (sources.py), the hashes of what was built (manifest.py).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from composite.binding import json_text
from composite.kernels import toolchain

MANIFEST = "manifest.json"
TIMINGS = "timings.json"
_DISTRIBUTIONS = ("apache-tvm", "apache-tvm-ffi", "torch-mlir", "gast", "numpy")


def described(source: Path, files: Sequence[Path], options: Mapping[str, Any]) -> dict[str, Any]:
    """What goes into the manifest: no absolute path, nothing of the machine but its compiler.

    files: all that the source is made of, itself included; options: what JSON can hold.
    """
    folder = source.resolve().parent
    return {
        "source": source.name,
        "files": {
            Path(os.path.relpath(path, folder)).as_posix(): _sha256(path) for path in sorted(files)
        },
        "versions": versions(),
        "options": json.loads(json.dumps(options)),
    }


def is_current(folder: Path, source: Path, options: Mapping[str, Any]) -> bool:
    """Whether the library in a folder is what building it now would give."""
    try:
        content = json_text.parsed((folder / MANIFEST).read_text(encoding="utf-8"))
        known = content["inputs"]
        files = [source.resolve().parent / name for name in known["files"]]
        if not (folder / TIMINGS).is_file() or known != described(source, files, options):
            return False
        built = content["files"].items()
        return all(_sha256(folder / name) == digest for name, digest in built)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # damaged, or written by another version: build it


def rule(target: Path, source: Path, content: Mapping[str, Any]) -> str:
    """A rule in make's syntax: the target is made of the files that a manifest's content has.

    A file that is gone is no error: it may be that nothing imports it any more.
    """
    names = content.get("inputs", {}).get("files", [source.name])
    files = [os.path.normpath(source.resolve().parent / name) for name in names]
    needed = [_escaped(file) for file in files]
    made = _escaped(os.path.abspath(target))
    return "\n".join([f"{made}: {' '.join(needed)}", *(f"{file}:" for file in needed), ""])


def _escaped(path: str) -> str:
    return re.sub(r"([\\ #])", r"\\\1", path).replace("$", "$$")


@functools.cache
def versions() -> dict[str, str]:
    """Names and versions of what compiles."""
    found = {
        "composite": _sources(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "cc": _c_compiler(),
    }
    return found | toolchain.versions(_DISTRIBUTIONS)


def _sources() -> str:
    """The hash of this package: sources, and the runtime that kernels are measured with."""
    root = Path(str(resources.files("composite")))
    paths = {*root.rglob("*.py"), *(root / "compiler").rglob("*.py"), *root.rglob("*.mlir")}
    paths |= {*(root / "compiler").rglob("*.mlir"), *(root / "runtime").glob("*.so")}
    return toolchain.digest(root, paths)


def _c_compiler() -> str:
    command = shutil.which(os.environ.get("CC", "cc"))
    if command is None:
        return "none"
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    return said.stdout.partition("\n")[0]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
