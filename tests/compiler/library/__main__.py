"""Runs changed calls of the library: `python -m tests.compiler.library [SEED COUNT]`."""

from __future__ import annotations

import os
import sys


def main(*draw: int) -> int:
    """Run all, or a draw of a seed and a count; 1 if one differs from TensorFlow."""
    # Set before TensorFlow is imported; see tests/conftest.py.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tests.compiler.library.variations import differences

    found = differences(*draw)
    print("\n".join([*found, f"{len(found)} differences"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
