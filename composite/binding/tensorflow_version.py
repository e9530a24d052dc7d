"""Which TensorFlow the package is built for, and the sentence for any other.

Reads the metadata of installed distributions, so that `import composite` need not import TensorFlow
(four seconds) to refuse a wrong one.
"""

from __future__ import annotations

import json
from importlib import metadata, resources, util
from pathlib import Path

# That the sources compile against and run with. A build is for one of them.
MINORS = ("2.21", "2.22")

# One project under several names; whichever is installed provides the package `tensorflow`.
_DISTRIBUTIONS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-intel",
    "tf-nightly",
    "tf-nightly-cpu",
)


def installed() -> str | None:
    """The version of the installed TensorFlow; None when there is none."""
    for distribution in _DISTRIBUTIONS:
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    if util.find_spec("tensorflow") is None:
        return None
    import tensorflow as tf  # built from source: no metadata, so it has to say it itself

    return str(tf.__version__)


def stamp() -> Path:
    """The file beside the runtime library that says what the library was built for."""
    return Path(str(resources.files("composite").joinpath("runtime"))) / "build_info.json"


def built_for(stamp: Path) -> str:
    """The version in a stamp. OSError, ValueError, KeyError or TypeError if there is none."""
    return str(json.loads(stamp.read_text(encoding="utf-8"))["tensorflow"])


def same_minor(version: str, other: str) -> bool:
    """Whether two versions share major and minor: what TensorFlow's C++ ABI goes by."""
    return version.split(".")[:2] == other.split(".")[:2]


def check() -> None:
    """Raises ImportError, in one sentence, unless the TensorFlow of this build is installed."""
    minor = _minor()
    version = installed()
    if version is None:
        raise ImportError(
            f"composite needs TensorFlow {minor}, and none is installed: "
            f"pip install 'tensorflow-cpu=={minor}.*' (or tensorflow)"
        )
    if not same_minor(version, minor):
        raise ImportError(
            f"composite is built for TensorFlow {minor}, but {version} is installed: "
            f"install tensorflow {minor}, or the composite wheel that is built for {version}"
        )


def _minor() -> str:
    try:
        return ".".join(built_for(stamp()).split(".")[:2])
    except (OSError, ValueError, KeyError, TypeError):
        return MINORS[0]  # where the library is needed, `native` says how to build it
