"""Random programs that read and write variables, with what orders them, and what they compute.

Each conflict of two accesses to one variable is ordered: by the handle, where TensorFlow's control
dependencies see it, else by an edge that the program has. So a program has one result.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

WIDTH = 4
VARIABLES = 3
# Handles 0 to 2 are those of the variables, handle 3 is another one of variable 0.
HANDLES = 4

ADDITIONS = ("add", "sub")
WRITES = ("assign", *ADDITIONS)
NESTED = ("branch", "loop", "call")


def variable_of(handle: int) -> int:
    return handle % VARIABLES


@dataclass(frozen=True)
class Step:
    """What a program does next; `left`, `right` and `waits` are any numbers: places of values."""

    kind: str
    handle: int
    left: int
    right: int
    function: int
    waits: tuple[int, ...] = ()
    body: tuple[Step, ...] = ()
    other: tuple[Step, ...] = ()  # of a branch that is not taken
    # How what has to come before does: by a control edge of it, or of what is computed of it.
    directly: bool = True

    def handles(self) -> set[int]:
        """Those that the step accesses."""
        own = set() if self.kind in ("mix", *NESTED) else {self.handle}
        return own.union(*(step.handles() for step in self.body + self.other))

    def calls(self) -> bool:
        """Whether it calls a function, with four handles of three variables."""
        return self.kind == "call" or any(step.calls() for step in self.body + self.other)


@dataclass(frozen=True)
class Program:
    steps: tuple[Step, ...]
    # "automatic": TensorFlow orders what has one handle; "manual": edges of the program alone do.
    order: str
    # Where the handles are from: "captured", "arguments" or "named".
    handles: str
    starts: tuple[tuple[float, ...], ...] = field(default=())


def drawn(seed: int, size: int = 12) -> Program:
    random_ = random.Random(seed)
    order = random_.choice(("automatic", "automatic", "manual"))
    handles = random_.choice(("captured", "captured", "arguments", "named"))
    count = random_.randint(3, size)
    steps = _steps(random_, count, HANDLES if handles != "captured" else VARIABLES, depth=2)
    starts = tuple(
        tuple(float(random_.randint(-8, 8)) for _ in range(WIDTH)) for _ in range(VARIABLES)
    )
    return Program(steps, order, handles, starts)


def _steps(random_: random.Random, count: int, handles: int, depth: int) -> tuple[Step, ...]:
    return tuple(_step(random_, handles, depth) for _ in range(count))


def _step(random_: random.Random, handles: int, depth: int) -> Step:
    kinds = ["read"] * 5 + ["mix"] * 6 + ["assign"] * 2 + ["add"] * 5 + ["sub"] * 3
    if depth > 0:
        kinds += NESTED
    kind = random_.choice(kinds)
    body: tuple[Step, ...] = ()
    other: tuple[Step, ...] = ()
    if kind in NESTED:
        # A function that is called may have two handles of one variable where its caller has one.
        own = HANDLES if kind == "call" else handles
        body = _steps(random_, random_.randint(1, 4), own, depth - 1)
        if kind == "branch":
            other = _steps(random_, random_.randint(1, 3), own, depth - 1)
    waits = [random_.randrange(64) for _ in range(random_.choice((0, 0, 0, 1, 2)))]
    return Step(
        kind,
        random_.randrange(handles),
        random_.randrange(64),
        random_.randrange(64),
        random_.randrange(4),
        tuple(waits),
        body,
        other,
        random_.random() < 0.6,
    )


def mixed(function: int, left: Any, right: Any, maximum: Any, absolute: Any) -> Any:
    """Exact in float32, as long as the numbers are small, and never a constant."""
    if function == 0:
        return left * 0.5 + right
    if function == 1:
        return maximum(left, right) - right * 0.5
    if function == 2:
        return absolute(left) * 0.5 - right * 0.25
    return left * 0.25 - right * 0.5


def simulated(program: Program) -> tuple[list[Any], list[Any]]:
    """What a program returns, and what its variables hold behind it: one step after the other."""
    variables = [np.array(start, np.float32) for start in program.starts]
    start = np.arange(1, WIDTH + 1, dtype=np.float32)
    return _run(program.steps, [start], variables), variables


def _run(steps: tuple[Step, ...], values: list[Any], variables: list[Any]) -> list[Any]:
    for step in steps:
        left = values[step.left % len(values)]
        right = values[step.right % len(values)]
        place = variable_of(step.handle)
        result = mixed(step.function, left, right, np.maximum, np.abs)
        if step.kind == "read":
            values.append(variables[place])
        elif step.kind == "mix":
            values.append(result)
        elif step.kind == "assign":
            variables[place] = result
        elif step.kind == "add":
            variables[place] = variables[place] + result
        elif step.kind == "sub":
            variables[place] = variables[place] - result
        elif step.kind == "branch":
            body = step.body if left.sum() > 0.0 else step.other
            values.append(_run(body, [right], variables)[-1])
        elif step.kind == "loop":
            carried = right
            for _ in range(2):
                carried = _run(step.body, [carried], variables)[-1]
            values.append(carried)
        elif step.kind == "call":
            values.append(_run(step.body, [right], variables)[-1])
    return values
