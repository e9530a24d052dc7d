"""Runs programs that share memory, and compares all that they hold with TensorFlow alone."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import composite
from tests.sharing.programs import Program
from tests.sharing.sides import Side, train

_STEPS = 30
_TOLERANCE = 2e-4  # kernels are nearer; their differences add up over the steps of a training
_COUNTED = ("packed_constants", "in_place_updates", "kernel_launches")


@dataclasses.dataclass
class Counts:
    """What was run, and what differed."""

    programs: int = 0
    steps: int = 0
    compared: int = 0
    differ: list[str] = dataclasses.field(default_factory=list)
    used: dict[str, int] = dataclasses.field(default_factory=dict)


class Runner:
    """Both sides, with kernels for all that programs call."""

    def __init__(self) -> None:
        """Waits for the kernels."""
        self._sides = (Side(ours=True), Side(ours=False))
        train(self._sides[0])

    def run(self, seed: int, counts: Counts) -> None:
        """Runs the program of a seed; stops at the first difference."""
        before = composite.stats()
        with tempfile.TemporaryDirectory(prefix="composite-sharing-") as folder:
            program = Program(seed, self._sides, Path(folder))
            for _ in range(_STEPS):
                program.step()
                composite.wait()  # so that the next step has the kernels that this one asked for
                counts.steps += 1
                if where := self._difference(program, counts):
                    steps = "\n  ".join(program.log)
                    counts.differ.append(f"seed {seed}: {where} after\n  {steps}")
                    break
        counts.programs += 1
        for name in _COUNTED:
            more = int(composite.stats()[name] - before[name])
            counts.used[name] = counts.used.get(name, 0) + more

    def _difference(self, program: Program, counts: Counts) -> str:
        ours, plain = (side.values() for side in self._sides)
        compared = [(name, ours[name], plain[name]) for name in ours]
        compared += [("a result", *(one.numpy() for one in pair)) for pair in program.results]
        counts.compared += len(compared)
        for name, one, other in compared:
            if not _is_near(one, other):
                return f"{name} is {np.abs(one - other).max():.2g} away"
        return ""


def _is_near(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True))
