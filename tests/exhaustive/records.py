"""What was found of each function, dtype and level, in measured.json."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from composite.compiler.tvm.math.accuracy import BOUNDS
from tests.exhaustive.judge import Found

TENSORFLOW = "TensorFlow"
"""In the place of a level: TensorFlow's op."""

PATH = Path(__file__).parent / "measured.json"
SAMPLED = ("power", "atan2", "divide_by_one")
"""Functions of two numbers."""
Records = dict[str, dict[str, dict[str, Found]]]
"""By function, dtype and level."""


def read() -> Records:
    """Return what is in the file."""
    if not PATH.exists():
        return {}
    read = json.loads(PATH.read_text(encoding="utf-8"))
    return {
        function: {
            dtype: {level: Found(**found) for level, found in levels.items()}
            for dtype, levels in dtypes.items()
        }
        for function, dtypes in read.items()
    }


def keep(function: str, dtype: str, found: Mapping[str, Found]) -> None:
    """Put what was found of a function in the place of what was known."""
    with (PATH.parent / "functions.py").open() as lock:  # others may keep something meanwhile
        fcntl.flock(lock, fcntl.LOCK_EX)
        _keep(function, dtype, found)


def _keep(function: str, dtype: str, found: Mapping[str, Found]) -> None:
    records = read()
    records.setdefault(function, {})[dtype] = dict(found)
    plain = {
        name: {
            kind: {at: asdict(one) for at, one in levels.items()} for kind, levels in own.items()
        }
        for name, own in sorted(records.items())
    }
    PATH.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def faults(function: str, dtype: str, found: Mapping[str, Found]) -> list[str]:
    """Say where what was found is not as the functions are said to be."""
    wrong = []
    for level, one in found.items():
        where = f"{function}, {dtype}, {level}"
        bound = bound_of(function, dtype, level)
        if bound is not None and one.error > bound:
            wrong.append(f"{where}: {one.error:.3f} ulp at {one.error_at!r}, not {bound}")
        if one.outside and bound is not None:
            wrong.append(f"{where}: {one.outside} outside of the range, first at {one.outside_at}")
        if one.signs and bound is not None:
            wrong.append(f"{where}: {one.signs} zeros of the wrong sign")
    return wrong


def bound_of(function: str, dtype: str, level: str) -> float | None:
    """Return the bound that is stated; there is none for TensorFlow's ops."""
    if level == TENSORFLOW:
        return None
    known = BOUNDS.get(function)
    return 0.5 if known is None else known.of(dtype, fuses=not level.startswith("x86-64-v2"))


def is_complete(function: str, found: Found) -> bool:
    """Whether what was found in float32 is of all inputs, or is to be of a sample."""
    return function in SAMPLED or found.inputs > 1 << 31


def known(function: str) -> list[str]:
    """Return the dtypes in which a function was tested completely."""
    return [
        dtype
        for dtype, levels in read().get(function, {}).items()
        if dtype != "float32" or any(is_complete(function, one) for one in levels.values())
    ]
