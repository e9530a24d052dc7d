"""Kernels and their bodies over the ring in which both are equal bit for bit (docs/proofs.md)."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.kernels import verify
from composite.ops import functions
from composite.reference import over_ring

_NUMBER = itertools.count()


@dataclass(frozen=True)
class Asked:
    """A kernel: the arguments of `backend.write`."""

    library: Any
    shapes: Sequence[Sequence[int | str]]
    target: backend.Target | None = None
    sizes: Sequence[int] = ()
    constants: Sequence[int] = ()
    choices: backend.Chosen = field(default_factory=dict)

    def written(self) -> backend.Written:
        """The loops."""
        return backend.write(
            self.library,
            self.shapes,
            target=self.target or backend.Target.host(),
            sizes=self.sizes,
            constants=self.constants,
            choices=self.choices,
        )

    def made(self, folder: Path, name: str) -> tuple[backend.Written, Path]:
        """The loops, and the file of their programs over the ring; NotCovered for none."""
        written, path = self.written(), folder / f"{name}.words"
        path.write_bytes(written.ring_programs(name))
        return written, path


def differences(asked: Asked, arrays: Sequence[np.ndarray], folder: Path, tasks: int) -> list[str]:
    """Where a kernel is not its body, for these integers and drawn floats of the same shapes."""
    random = np.random.default_rng(0)
    drawn = [over_ring.drawn(a, random) for a in arrays]
    wanted = over_ring.results(functions.body(asked.library), drawn)
    name = f"exact_{next(_NUMBER)}"
    written, path = asked.made(folder, name)
    given = [np.zeros(a, a.dtype) if i in asked.sizes else a for i, a in enumerate(drawn)]
    results = verify.run_kernel(path, name, given, wanted, tasks, packed=written.module.packed)
    return [
        f"result {number}: {told}; {'+'.join(written.module.strategies.values())}"
        for number, pair in enumerate(zip(results, wanted, strict=True))
        if (told := over_ring.difference(*pair))
    ]


@dataclass
class Counts:
    """How many kernels were equal to their bodies, and what those were not compared for."""

    equal: int = 0
    uncovered: collections.Counter[str] = field(default_factory=collections.Counter)

    def compare(
        self, asked: Asked, arrays: Sequence[np.ndarray], folder: Path, tasks: int
    ) -> list[str]:
        """As `differences`; none for a kernel that is not covered."""
        try:
            found = differences(asked, arrays, folder, tasks)
        except backend.NotCovered as error:
            self.uncovered[str(error)] += 1
            return []
        except tf.errors.OpError as error:  # it refuses these sizes
            self.uncovered[f"its body raises {error.message}"] += 1
            return []
        self.equal += not found
        return found

    def __str__(self) -> str:
        reasons = [f"  {count}: {why}" for why, count in self.uncovered.most_common()]
        number = sum(self.uncovered.values())
        lines = [f"over the ring: {self.equal} kernels are equal, {number} not covered", *reasons]
        return "\n".join(lines)


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the same arguments that returns the gradients of all of them."""

    def derived(*args: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = function(*args)
        return tape.gradient(y, args)

    return derived
