"""The files of tests that the wheel of Keras has, found without importing it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import util
from pathlib import Path


def source() -> Path:
    """The folder keras/src."""
    spec = util.find_spec("keras")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "src"


def named(files: Sequence[str]) -> list[str]:
    """The modules of tests in these folders and files of keras/src; ValueError where there is none.

    "layers/core", "layers/core/dense_test.py".
    """
    names = []
    for file in files:
        path = source() / file
        tests = sorted(path.rglob("*_test.py")) if path.is_dir() else [path]
        if not tests or not tests[0].is_file():
            raise ValueError(f"{path} has no tests")
        for test in tests:
            parts = test.relative_to(source()).with_suffix("").parts
            names.append(".".join(("keras", "src", *parts)))
    return names
