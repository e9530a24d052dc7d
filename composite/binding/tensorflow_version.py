"""Which TensorFlow the package is built for, and the sentence for any other.

Reads the metadata of installed distributions, so that `import composite` need not import TensorFlow
(four seconds) to refuse a wrong one. Not for the runtime library's own stamp: see `native`.
"""

from __future__ import annotations

from importlib import metadata, util

SUPPORTED = "2.21"

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


def same_minor(version: str, other: str) -> bool:
    """Whether two versions share major and minor: what TensorFlow's C++ ABI goes by."""
    return version.split(".")[:2] == other.split(".")[:2]


def check() -> None:
    """Raises ImportError, in one sentence, unless the supported TensorFlow is installed."""
    version = installed()
    if version is None:
        raise ImportError(
            f"composite needs TensorFlow {SUPPORTED}, and none is installed: "
            f"pip install 'tensorflow-cpu=={SUPPORTED}.*' (or tensorflow)"
        )
    if not same_minor(version, SUPPORTED):
        raise ImportError(
            f"composite is built for TensorFlow {SUPPORTED}, but {version} is installed: "
            f"install tensorflow {SUPPORTED}, or the composite wheel that is built for {version}"
        )
