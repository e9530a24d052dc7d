"""What runs in the compiler's process: tasks one after the other, until no client is left.

Needs no TensorFlow. Nobody reads what is printed here but the log of a client, when the process has
ended: see `process`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from composite.compiler.tvm import importing
from composite.compiler_process import messages, service, tasks, template
from composite.compiler_process.messages import Message

BEGIN = Message({"begin": True}, [])  # asks for nothing but that the process gets ready for tasks
SINCE = "since"  # the fact that says when a message was sent, by the system's monotonic clock
STARTED = b"s"  # said when a task is taken up, before its answer
_SILENT = 30.0  # seconds that a client may take to say the next part of a message
_NICE = 5  # below the user's own work
_EXPENDABLE = 500  # of 1000: where memory is short, this process goes before the user's


def serve(rendezvous: socket.socket, requests: socket.socket, limit: float) -> None:
    """Serve each conversation that comes, until all clients have closed their ends.

    A task that takes longer than `limit` seconds ends the process, which then says where it was:
    nobody else might end it, when its client is gone. So does one that raised what it should not
    have, once that is said: modules may be half imported then, and the next task is not to suffer
    from it. `requests`: those for further processes, which a template of this one serves.
    """
    _prepare()
    _Server(rendezvous, limit, requests).serve()


class _Server:
    """What serves a rendezvous in this process."""

    def __init__(
        self, rendezvous: socket.socket, limit: float, requests: socket.socket | None = None
    ) -> None:
        """`requests`: None in a process that was forked from a template."""
        self._rendezvous = rendezvous
        self._limit = limit
        self._requests = requests

    def serve(self) -> None:
        """Serve it to its end, or until this process is not sound any more."""
        _say_hello(self._rendezvous)
        is_sound = True
        while is_sound:
            _, received, _, _ = socket.recv_fds(self._rendezvous, 1, 1)
            if not received:
                return
            with socket.socket(fileno=received[0]) as conversation:
                conversation.settimeout(_SILENT)
                is_sound = self._converse(conversation)

    def _converse(self, conversation: socket.socket) -> bool:
        """Do one task. Returns whether the process can do another."""
        try:
            asked = messages.receive(conversation)
            conversation.sendall(STARTED)
        except (OSError, EOFError):  # a client that is gone, or has given up, is told nothing
            return True
        os.ftruncate(2, 0)  # what was printed belongs to the task in hand
        os.lseek(2, 0, os.SEEK_SET)
        with self._limited():
            waited = max(_load_compiler().ended - asked.facts.pop(SINCE), 0.0)
        self._leave_template(conversation)
        with self._limited():
            answer = Message({}) if asked == BEGIN else service.answer(asked)
        with contextlib.suppress(OSError):
            steps = {"start": waited} | tasks.steps_of(answer)
            conversation.sendall(tasks.with_steps(answer, steps).encoded())
        return not tasks.is_unforeseen(answer)

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        """End the process if this takes too long."""
        faulthandler.dump_traceback_later(self._limit, exit=True, file=2)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _leave_template(self, conversation: socket.socket) -> None:
        """Leave a template of this process behind, once, if it has imported all."""
        requests, self._requests = self._requests, None
        if requests is None:
            return
        if not _load_compiler().is_whole:
            requests.close()
            return
        others = (self._rendezvous, conversation)
        template.leave(requests, others, importing.import_lowerings, self._serve_another)

    def _serve_another(self, rendezvous: socket.socket) -> None:
        """Serve it, in a process that was forked from the template."""
        _Server(rendezvous, self._limit).serve()


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is said to the user's process
    _watch_signals()
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    with contextlib.suppress(OSError):  # not every container lets us
        Path("/proc/self/oom_score_adj").write_text(str(_EXPENDABLE), encoding="ascii")


class _Import(NamedTuple):
    """An import that was tried: when it ended, by the monotonic clock, and whether all is there."""

    ended: float
    is_whole: bool


@functools.cache
def _load_compiler() -> _Import:
    """Import what compiles, with Python's handlers of signals in place of the one of TVM's.

    TVM's allocates memory: after a fault inside of the allocator it waits for ever.
    """
    is_whole = False
    with contextlib.suppress(Exception):  # the task raises it again, and is told
        importing.import_core()
        _watch_signals()
        importing.import_compiler()
        from google.protobuf import descriptor_pb2, message_factory  # noqa: F401 - the service does

        is_whole = True
    return _Import(time.monotonic(), is_whole)


def _watch_signals() -> None:
    """Have a signal that ends the process say its name, and where it came."""
    faulthandler.disable()
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # which faulthandler calls after its own words
    faulthandler.enable(2, all_threads=False)


def _say_hello(rendezvous: socket.socket) -> None:
    """Tell the client which process this is, with a descriptor of it where the system has them."""
    number = str(os.getpid()).encode()
    try:
        process = os.pidfd_open(os.getpid())
    except OSError:  # before Linux 5.3
        rendezvous.sendall(number)
        return
    socket.send_fds(rendezvous, [number], [process])
    os.close(process)
