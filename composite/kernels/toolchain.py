"""The versions of the compilers: hashes of our own sources, and the versions of packages.

This module imports only the standard library, so that checking for changes is fast.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from importlib import metadata, resources
from pathlib import Path

# Anywhere in the text, comments included: an unneeded file does no harm.
_IMPORT = re.compile(
    r"^\s*(?:from|import)\s+composite\.compiler\b\.?([\w.]*)(?:\s+import\s+(\([^)]*\)|[^\n]*))?",
    re.MULTILINE,
)


@functools.lru_cache(maxsize=1)
def toolchain() -> tuple[tuple[str, str], ...]:
    """Names and versions of what compiles kernels. Our compiler's version is a hash of its sources.

    It contains TensorFlow, because the accuracy of kernels is found by comparison with its ops.
    """
    root = Path(str(resources.files("composite").joinpath("compiler")))
    names = ("apache-tvm", "apache-tvm-ffi", "tensorflow", "tensorflow-cpu")
    return (("compiler", digest(root, sources(root))), *versions(names).items())


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """The versions of these distributions, as far as they are installed."""
    found = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest(root: Path, paths: Iterable[Path]) -> str:
    """The hash of the relative names and contents of files in a folder, 16 hex digits."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def sources(root: Path) -> set[Path]:
    """The sources that make kernels: the compiler's `tvm`, and what it imports of the compiler.

    The front end is not one of them, since its effects are in the expansion.
    """
    there = {path.relative_to(root).as_posix() for path in root.rglob("*.py")}
    found = {name for name in there if name.startswith("tvm/")}
    waiting = list(found)
    while waiting:
        new = there.intersection(_imported(root / waiting.pop())) - found
        found |= new
        waiting += new
    return {root / name for name in found}


def _imported(source: Path) -> Iterator[str]:
    """The files in the compiler's folder that the imports of a source may refer to."""
    for module, names in _IMPORT.findall(source.read_text(encoding="utf-8")):
        folder = module.replace(".", "/")
        for name in ("", *re.findall(r"\w+", names)):
            own = "/".join(filter(None, (folder, name)))
            yield f"{own}.py"
            yield f"{own}/__init__.py" if own else "__init__.py"
