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
from pathlib import Path

from composite.compiler.tvm import importing
from composite.compiler_process import messages, service, tasks
from composite.compiler_process.messages import Message

BEGIN = Message({"begin": True}, [])  # asks for nothing but that the process gets ready for tasks
SINCE = "since"  # the fact that says when a message was sent, by the system's monotonic clock
STARTED = b"s"  # said when a task is taken up, before its answer
_SILENT = 30.0  # seconds that a client may take to say the next part of a message
_NICE = 5  # below the user's own work
_EXPENDABLE = 500  # of 1000: where memory is short, this process goes before the user's


def serve(rendezvous: socket.socket, limit: float) -> None:
    """Serve each conversation that comes, until all clients have closed their ends.

    A task that takes longer than `limit` seconds ends the process, which then says where it was:
    nobody else might end it, when its client is gone. So does one that raised what it should not
    have, once that is said: modules may be half imported then, and the next task is not to suffer
    from it.
    """
    _prepare()
    _say_hello(rendezvous)
    is_sound = True
    while is_sound:
        _, received, _, _ = socket.recv_fds(rendezvous, 1, 1)
        if not received:
            return
        with socket.socket(fileno=received[0]) as conversation:
            conversation.settimeout(_SILENT)
            is_sound = _converse(conversation, limit)


def _converse(conversation: socket.socket, limit: float) -> bool:
    """Do one task. Returns whether the process can do another."""
    try:
        asked = messages.receive(conversation)
        conversation.sendall(STARTED)
    except (OSError, EOFError):  # a client that is gone, or has given up, is told nothing
        return True
    os.ftruncate(2, 0)  # what was printed belongs to the task in hand
    os.lseek(2, 0, os.SEEK_SET)
    faulthandler.dump_traceback_later(limit, exit=True, file=2)
    try:
        waited = max(_load_compiler() - asked.facts.pop(SINCE), 0.0)
        answer = Message({}) if asked == BEGIN else service.answer(asked)
    finally:
        faulthandler.cancel_dump_traceback_later()
    with contextlib.suppress(OSError):
        steps = {"start": waited} | tasks.steps_of(answer)
        conversation.sendall(tasks.with_steps(answer, steps).encoded())
    return not tasks.is_unforeseen(answer)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is said to the user's process
    _watch_signals()
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    with contextlib.suppress(OSError):  # not every container lets us
        Path("/proc/self/oom_score_adj").write_text(str(_EXPENDABLE), encoding="ascii")


@functools.cache
def _load_compiler() -> float:
    """Import what compiles, with Python's handlers of signals in place of the one of TVM's.

    TVM's allocates memory: after a fault inside of the allocator it waits for ever. Returns when
    all was imported, by the monotonic clock.
    """
    with contextlib.suppress(Exception):  # the task raises it again, and is told
        importing.import_core()
        _watch_signals()
        importing.import_compiler()
    return time.monotonic()


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
