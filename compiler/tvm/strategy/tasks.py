"""Loops over independent tasks, and when they are worth a second thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.strategy.context import Context, Trips
from composite.compiler.tvm.tir.block import Block, index


def tasks(
    context: Context, extent: Expr | int, cycles: Expr | int, body: Callable[[Expr], None]
) -> None:
    """Write a loop over independent tasks, parallel if all ``cycles`` together are worth it.

    If the call decides how many cycles there are, both loops are written and the call chooses.
    """
    block = context.block
    if context.trips is not None:
        _tasks_of_trip(block, extent, body, context.trips)
        return
    if context.target.cores == 1 or (isinstance(extent, int) and extent <= 1):
        with block.loop(extent, "task") as task:
            body(task)
        return
    if isinstance(cycles, int):
        default = "parallel" if cycles >= context.machine.parallel else "inline"
        parallel = context.choose("tasks", ("inline", "parallel"), default) == "parallel"
        with block.loop(extent, "task", parallel=parallel) as task:
            body(task)
        return
    least = context.choose("tasks.cycles", (10_000, 30_000, 100_000), context.machine.parallel)
    with block.when(index(cycles) < index(least)), block.loop(extent, "task") as task:
        body(task)
    with block.otherwise(), block.loop(extent, "task", parallel=True) as task:
        body(task)


def _tasks_of_trip(
    block: Block, extent: Expr | int, body: Callable[[Expr], None], trips: Trips
) -> None:
    """Write the tasks of a stage of a trip, for the team or the thread that runs the loop."""
    end = block.meeting() if trips.team and trips.meets else nullcontext()
    with end, block.loop(extent, "task", parallel=trips.team) as i:
        body(i)


@dataclass(frozen=True)
class Tasks:
    """Independent tasks that a strategy has yet to write.

    Sets of tasks with equal ``key`` are cut alike: task i of each makes the same part of its
    result. They run if ``condition`` holds; None is for the last set, which runs if no other did.
    ``around`` writes what one thread does before and after them.
    """

    key: tuple[object, ...]
    extent: Expr | int
    cycles: Expr | int
    body: Callable[[Expr], None]
    condition: Expr | None = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext


class TaskWriter(ABC):
    """The writer of a stage that is one loop over tasks, which share no workspace.

    A team of threads can run such a loop, and it can be written together with others that are cut
    alike.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def task_sets(self) -> list[Tasks]:
        """Return the tasks: several sets if a condition chooses between them."""

    def write(self) -> None:
        """Write the loop."""
        write_together([self.task_sets()], self.context)


def write_together(sets: Sequence[Sequence[Tasks]], context: Context) -> None:
    """Write stages whose tasks are cut alike as one loop: each task makes its part of them all."""
    block = context.block

    def write(number: int) -> None:
        alike = [one[number] for one in sets]

        def body(task: Expr) -> None:
            for one in alike:
                one.body(task)

        def loop() -> None:
            cycles = sum((one.cycles for one in alike[1:]), alike[0].cycles)
            with ExitStack() as stack:
                for one in alike:
                    stack.enter_context(one.around())
                tasks(context, alike[0].extent, cycles, body)

        if alike[0].condition is None:
            loop()
            return
        with block.when(alike[0].condition):
            loop()
        with block.otherwise():
            write(number + 1)

    write(0)
