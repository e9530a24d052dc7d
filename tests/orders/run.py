"""Runs random programs as TensorFlow does, and with regions, and compares them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from composite.binding import settings
from composite.jit import worker
from tests.orders.building import SHAPE, function_of
from tests.orders.programs import WIDTH, Program, drawn, simulated


@dataclass
class Counts:
    programs: int = 0
    regions: int = 0
    launches: int = 0
    differ: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.regions} regions, {self.launches} kernel launches, "
            f"{len(self.differ)} differ"
        )


class _Variables:
    """The variables of a program, found by their handles and by their names."""

    def __init__(self, program: Program, name: str) -> None:
        self.variables = [tf.Variable(start) for start in program.starts]
        self._named = []
        if program.handles == "named":
            for number, start in enumerate(program.starts):
                handle = tf.raw_ops.VarHandleOp(
                    dtype=tf.float32, shape=SHAPE, shared_name=f"{name}_{number}"
                )
                tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(start))
                self._named.append(handle)

    def held(self) -> list[Any]:
        if self._named:
            return [
                tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32).numpy()
                for handle in self._named
            ]
        return [variable.numpy() for variable in self.variables]


def ran(
    program: Program, name: str, *, regions: bool, calls: int = 1, wait: bool = False
) -> tuple[list[Any], list[Any]]:
    """What a program returned, and what its variables hold behind it."""
    own = _Variables(program, name)
    function = function_of(program, own.variables, name)
    start = tf.range(1.0, WIDTH + 1)
    found = []
    worker.announce_compiler()  # without it there are no regions
    # The options of the binding do not start the compiler.
    options = composite.options if wait else settings.options
    for _ in range(calls):
        with options(regions=regions):
            found = [value.numpy() for value in function(start)]
        if wait:
            composite.wait()
    return found, own.held()


def run(seed: int, counts: Counts, *, with_kernels: bool, size: int = 12) -> None:
    """Compare a program's results; equal to the bit, as its numbers are exact."""
    program = drawn(seed, size)
    calls = 3 if with_kernels else 1
    before = composite.stats()
    found = ran(program, f"r{seed}", regions=True, calls=calls, wait=with_kernels)
    after = composite.stats()
    counts.regions += after["regions"] - before["regions"]
    counts.launches += after["kernel_launches"] - before["kernel_launches"]
    counts.programs += 1
    wanted = ran(program, f"p{seed}", regions=False, calls=calls)
    if calls == 1 and not same(wanted, simulated(program)):
        counts.differ.append(f"seed {seed}: TensorFlow differs from the simulation: {program}")
    if not same(found, wanted):
        counts.differ.append(f"seed {seed}: {found} and not {wanted}")


def same(one: tuple[list[Any], list[Any]], two: tuple[list[Any], list[Any]]) -> bool:
    return all(
        len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(one, two, strict=True)
    )
