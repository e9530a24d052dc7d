"""Kernels with all that a machine without TensorFlow needs to check and time them: a folder.

For each level of GPUs, and for PTX, a list has the launches of each call with their sizes put in;
beside it lie the machine code, and exact results. Reading it needs NumPy alone. Not here: what is
made of a work (`make.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
PTX = "ptx"
"""The level of what the driver of any GPU compiles."""


@dataclass(frozen=True)
class Step:
    """A launch of a call.

    Attributes:
        function: Its name in the machine code.
        blocks: How many blocks there is work for; fewer are right, too.
        threads: Threads of a block.
        arguments: Arrays by their names ("in0", "out0", "work0"), or sizes.
        shared: Bytes of shared memory that the launch gives a block.
        meets: Whether its blocks wait for each other, so that all must run at a time.
    """

    function: str
    blocks: int
    threads: int
    arguments: Sequence[str | int]
    shared: int = 0
    meets: bool = False


@dataclass(frozen=True)
class Call:
    """A call of a kernel at known sizes.

    Attributes:
        sizes: Its symbols.
        outputs: Shape and dtype of each output.
        workspaces: Bytes of each.
        steps: Its launches.
        checksum: Of the bytes of the inputs, which the machine that runs it draws again.
        timed: Whether it is timed; it is checked anyway.
    """

    sizes: dict[str, int]
    outputs: Sequence[tuple[list[int], str]]
    workspaces: Sequence[int]
    steps: Sequence[Step]
    checksum: int
    timed: bool


@dataclass(frozen=True)
class Kernel:
    """A work's kernel; without calls, `missing` says why there is none."""

    work: str
    key: str
    strategy: str
    calls: Sequence[Call]
    missing: str = ""


def save(kernels: Sequence[Kernel], made_with: dict[str, str], folder: Path, level: str) -> None:
    """Write the list of the kernels for a level."""
    listed = {"made_with": made_with, "kernels": [asdict(one) for one in kernels]}
    (folder / f"{level}.json").write_text(json.dumps(listed, indent=1), encoding="utf-8")


def load(folder: Path, level: str) -> tuple[list[Kernel], dict[str, str]]:
    """The kernels for a level, and the versions of what they were made with."""
    path = folder / f"{_listed(folder, level)}.json"
    listed = json.loads(path.read_text(encoding="utf-8"))
    kernels = []
    for one in listed["kernels"]:
        calls = [_call(call) for call in one.pop("calls")]
        kernels.append(Kernel(**one, calls=calls))
    return kernels, listed["made_with"]


def _listed(folder: Path, level: str) -> str:
    """The level itself, or PTX where a bundle has no machine code for it."""
    return level if (folder / f"{level}.json").exists() else PTX


def _call(listed: dict[str, Any]) -> Call:
    steps = [Step(**step) for step in listed.pop("steps")]
    outputs = [(list(shape), str(dtype)) for shape, dtype in listed.pop("outputs")]
    return Call(**listed, steps=steps, outputs=outputs)


def is_there(folder: Path) -> bool:
    """Whether a folder has a bundle."""
    return (folder / f"{PTX}.json").exists()


def code_file(folder: Path, key: str, level: str) -> Path:
    """Where that lies of a kernel which the driver loads on GPUs of a level."""
    return folder / f"{key}.{level}"


def code_of(folder: Path, key: str, level: str) -> bytes:
    """The machine code of a kernel for a level, or PTX; a text ends with a zero."""
    return code_file(folder, key, _listed(folder, level)).read_bytes() + b"\0"


def save_exact(folder: Path, key: str, number: int, exact: Sequence[tuple[Array, Array]]) -> None:
    """Write places and exact values of each output of a call."""
    arrays: dict[str, Any] = {}
    for i, (places, values) in enumerate(exact):
        arrays |= {f"p{i}": places, f"v{i}": values}
    np.savez_compressed(folder / f"{key}.{number}.npz", **arrays)


def load_exact(folder: Path, key: str, number: int) -> list[tuple[Array, Array]]:
    """Places and exact values of each output of a call."""
    with np.load(folder / f"{key}.{number}.npz") as held:
        return [(held[f"p{i}"], held[f"v{i}"]) for i in range(len(held.files) // 2)]
