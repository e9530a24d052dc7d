"""What compiles: the sources of our own compiler, and the versions of others.

This module imports the standard library only: finding out that nothing has changed takes no time.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from importlib import metadata, resources
from pathlib import Path

# In code or not: a file too many does no harm.
_IMPORT = re.compile(
    r"^\s*(?:from|import)\s+composite\.compiler\b\.?([\w.]*)(?:\s+import\s+(\([^)]*\)|[^\n]*))?",
    re.MULTILINE,
)


@functools.lru_cache(maxsize=1)
def toolchain() -> tuple[tuple[str, str], ...]:
    """What compiles a kernel: names and versions. Our compiler's version is that of its sources.

    TensorFlow is in it because a kernel's accuracy is told by comparing it with TensorFlow's ops.
    """
    root = Path(str(resources.files("composite").joinpath("compiler")))
    names = ("apache-tvm", "apache-tvm-ffi", "tensorflow", "tensorflow-cpu")
    return (("compiler", digest(root, sources(root))), *versions(names).items())


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """The versions of those distributions that are installed."""
    found = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest(root: Path, paths: Iterable[Path]) -> str:
    """The hash of files under a folder: their names there, and their bytes; 16 hex digits."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def sources(root: Path) -> set[Path]:
    """The sources that make kernels: `tvm` in the compiler's folder, and all that it imports of it.

    The front end is none of them: what it does is in the expansion.
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
    """Under the compiler's folder, the files that what a source imports may be."""
    for module, names in _IMPORT.findall(source.read_text(encoding="utf-8")):
        folder = module.replace(".", "/")
        for name in ("", *re.findall(r"\w+", names)):
            own = "/".join(filter(None, (folder, name)))
            yield f"{own}.py"
            yield f"{own}/__init__.py" if own else "__init__.py"
