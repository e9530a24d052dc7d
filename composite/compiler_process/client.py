"""Asks the compiler, which is started with the first task and again when it is gone.

Tasks of several threads at once are done by as many processes, up to a number that is set; beyond
it they wait for each other. The first process is that of a new interpreter; further ones, and those
that take the place of one that is gone, are forked from the template that it leaves, if it can.

A process that ends while it is at a task has that task fail, and no other; after a few in a row it
is not started for a while, so that a task which cannot be done is not what a machine does all day.

COMPOSITE_COMPILER=thread lets the calling thread compile, in this process. So it is too where no
interpreter can be started, as in a program that has Python embedded.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from composite.binding.log import logger
from composite.compiler import account
from composite.compiler.tvm import Chosen, LinkError, Target
from composite.compiler.tvm.cuda.nvrtc import NvrtcError
from composite.compiler_process import service
from composite.compiler_process.messages import Message
from composite.compiler_process.process import CannotStart, Gone, HungUp, Process, launched
from composite.compiler_process.tasks import CompilerError, Made, Task, answered, steps_of
from composite.compiler_process.template import Template

ENVIRONMENT = "COMPOSITE_COMPILER"
LIMIT = 180.0  # seconds that a task may take; the largest kernels take ten
PROCESSES = min(4, len(os.sched_getaffinity(0)))
"""How many compilers there are at once: no more than there are processors for them."""

_PATIENCE = 0.05  # seconds that a task waits before another process is started for it
_IN_A_ROW = 3  # ends of the process without an answer between them,
_PAUSE = 300.0  # after which it is not started for so many seconds


class CompilerGone(RuntimeError):  # noqa: N818 - says what is the case
    """The compiler's process ended, or was ended, before it had an answer; the message says how."""


class CompilerPaused(CompilerGone):
    """It ended too often to be started at once; the end that came last was told."""


UNMADE = (CompilerError, CompilerGone, LinkError, NvrtcError)
"""What leaves a call without a kernel and says in one line why, though a kernel could be made."""


class Stopped(Exception):  # noqa: N818 - not an error
    """The process ends: what is left of a request is not worth waiting for."""


def never() -> bool:
    """For whoever waits until there is an answer."""
    return False


def task_of(  # noqa: PLR0913 - all that a kernel depends on
    library: Any,
    in_shapes: Sequence[Sequence[int | str]],
    *,
    target: Target,
    sizes: Sequence[int] = (),
    constants: Sequence[int] = (),
    choices: Chosen = MappingProxyType({}),
    name: str = "",
    runtime: str | None = None,
    over_ring: bool = False,
) -> Task:
    """A task for `library` (a FunctionDefLibrary): its loops; with a `name`, its object files.

    With the path of the `runtime`, a library that can be loaded too; `over_ring`: programs too.
    """
    return Task(
        function=library.SerializeToString(deterministic=True),
        schema=_schema(type(library).DESCRIPTOR.file),
        in_shapes=in_shapes,
        target=target,
        sizes=sizes,
        constants=constants,
        choices=choices,
        name=name,
        link=runtime is not None,
        runtime=runtime or "",
        over_ring=over_ring,
    )


def _schema(file: Any) -> bytes:
    """A file of declarations and what it imports, as a FileDescriptorSet, leaves first."""
    from google.protobuf import descriptor_pb2

    found: dict[str, Any] = {}

    def visit(one: Any) -> None:
        if one.name not in found:
            for other in one.dependencies:
                visit(other)
            found[one.name] = one

    visit(file)
    files = descriptor_pb2.FileDescriptorSet()
    for one in found.values():
        one.CopyToProto(files.file.add())
    return files.SerializeToString(deterministic=True)


class Client:
    """Who asks, for all threads of this process. Not for use from outside: see `perform`."""

    def __init__(self, limit: float = LIMIT, pause: float = _PAUSE, most: int = 1) -> None:
        """`most`: processes at once."""
        self._limit = limit
        self._pause = pause
        self._most = most
        self._lock = threading.Condition()
        self._processes: dict[Process, int] = {}  # and how many tasks each has in hand
        self._is_starting = False  # a process
        self._template: Template | None = None  # of the one that was started last
        self._may_fork = True  # others from a template
        self._is_inside = False  # no process can be started
        self._ends = 0  # of the process, in a row
        self._resumes = 0.0  # when it may be started again

    @property
    def number(self) -> int | None:
        """The compiler's process that was started first, or None."""
        return next(iter(self.numbers), None)

    @property
    def numbers(self) -> list[int]:
        """The compiler's processes, in the order in which they were started."""
        return [process.number for process in list(self._processes)]

    def perform(self, task: Task, stopping: Callable[[], bool] = never) -> Made:
        """Have a task done.

        Raises NotCovered and LinkError, as the compiler does; CompilerError for whatever else it
        raises; CompilerGone; Stopped once `stopping()`, which is asked now and then, says so.
        """
        with account.step("queue"):
            answer = self._answer(task.message(), stopping)
            account.note(steps_of(answer))
        return answered(task, answer)

    def begin(self) -> None:
        """Start the compiler's process, which gets ready for tasks meanwhile; nothing if it runs.

        A process that cannot be started is told by the first task.
        """
        with contextlib.suppress(CompilerGone):
            process = self._taken(most=1)
            if process is not None:
                process.begin()
                self._give_back(process)

    def _answer(self, task: Message, stopping: Callable[[], bool]) -> Message:
        while True:
            process = self._taken(self._most)
            if process is None:
                return service.answer(task)
            try:
                answer = process.ask(task, stopping)
            except HungUp:
                raise Stopped from None
            except Gone as gone:
                self._let_go(process)
                if not gone.was_at_it and self._ends < _IN_A_ROW:
                    continue  # it ended beforehand: a new one has not seen this task
                raise CompilerGone(f"the compiler's process is gone: {gone}") from None
            finally:
                self._give_back(process)
            self._ends = 0
            return answer

    def _give_back(self, process: Process) -> None:
        with self._lock:
            if process in self._processes:
                self._processes[process] -= 1
                self._lock.notify_all()

    def _taken(self, most: int) -> Process | None:
        """The process with the fewest tasks, which has one more; None where this one compiles.

        Another is started if each stays at its task for a while, unless there are so many.
        """
        with self._lock:
            while True:
                if self._is_inside or os.environ.get(ENVIRONMENT) == "thread":
                    return None
                if self._processes and len(self._processes) < most:
                    self._lock.wait_for(lambda: not all(self._processes.values()), _PATIENCE)
                has_room = len(self._processes) < most
                process = min(self._processes, key=self._processes.__getitem__, default=None)
                if process is not None and not (self._processes[process] and has_room):
                    self._processes[process] += 1
                    return process
                if not self._is_starting:
                    break
                self._lock.wait()  # until that is there, or another is free
            self._is_starting = True
        process = None
        try:
            process = self._started()
        finally:
            with self._lock:
                self._is_starting = False
                if process is not None:
                    self._processes[process] = 1
                self._lock.notify_all()
        return process

    def _started(self) -> Process | None:
        """A new process; None where none can be started."""
        left = self._resumes - time.monotonic()
        if left > 0:
            raise CompilerPaused(
                f"the compiler's process ended {_IN_A_ROW} times in a row: it is started "
                f"again in {left:.0f} s at the earliest"
            )
        try:
            with account.step("start"):
                process = self._forked() or self._launched()
        except CannotStart as error:
            self._is_inside = True
            logger.warning("kernels are compiled in this process: %s", error)
            return None
        except Gone as gone:
            with self._lock:
                self._count_end()
            raise CompilerGone(f"the compiler's process is gone: {gone}") from None
        logger.debug("the compiler is process %d", process.number)
        return process

    def _forked(self) -> Process | None:
        """A process that is forked from the template; None where there is none any more."""
        template = self._template
        if template is None or not self._may_fork:
            return None
        try:
            return Process(self._limit, template.fork, is_forked=True)
        except Gone as gone:
            logger.debug("the compiler is started anew, its template is gone: %s", gone)
            return None

    def _launched(self) -> Process:
        process, self._template = launched(self._limit)
        return process

    def _let_go(self, process: Process) -> None:
        with self._lock:
            if self._processes.pop(process, None) is not None:  # no other thread has seen it before
                self._count_end()
                if process.is_forked and not process.has_answered:
                    self._may_fork = False  # it may be the fork that this system does not bear

    def _count_end(self) -> None:
        self._ends += 1
        if self._ends >= _IN_A_ROW:
            self._ends, self._resumes = 0, time.monotonic() + self._pause

    def in_child(self) -> None:
        """Called in a process that was just forked: it shares the compiler."""
        self._lock = threading.Condition()  # a thread that is not here may have held it
        self._processes = dict.fromkeys(self._processes, 0)
        self._is_starting = False


_client = Client(most=PROCESSES)
perform = _client.perform
begin = _client.begin
os.register_at_fork(after_in_child=_client.in_child)
