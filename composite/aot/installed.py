"""Whether a Python file is somebody's own, or came with Python or with a package that is installed.

Not for: versions of what is installed (inputs.py, tensorflow_version.py).
"""

from __future__ import annotations

import functools
import os
import sysconfig
from pathlib import Path

# pip's environments for builds, Debian, user installations and links to other environments all
# have them in folders of these names, of which sysconfig knows one.
_FOLDERS = frozenset({"site-packages", "dist-packages"})


def is_installed(file: str) -> bool:
    """Whether a file is installed, by its name or by what the name is a link to."""
    return any(
        not _FOLDERS.isdisjoint(path.parts) or any(path.is_relative_to(r) for r in _roots())
        for path in (Path(os.path.abspath(file)), Path(os.path.realpath(file)))
    )


@functools.cache
def _roots() -> frozenset[Path]:
    paths = [sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return frozenset(Path(one) for path in paths if path for one in (path, os.path.realpath(path)))
