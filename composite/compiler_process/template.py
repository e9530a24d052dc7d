"""A process that has imported the compiler and does no tasks: further compilers are forked from it.

The first compiler leaves it behind when its own import is done. To fork is safe there: it has no
threads, and so nobody else's locks. A process with threads leaves none.

Each request has the ends of what the new process is spoken to by. The template ends when the last
client's end of its socket is closed. It is nobody's child but the system's, and the system takes
what it has forked when that ends, so nobody has to wait for any of them.

Not for: what the processes do (server.py).
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

_ENDING = 0.1  # seconds that a thread which was told to end may take


class Template:
    """A client's end."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    def fork(self, rendezvous: socket.socket, log: int) -> None:
        """Have a compiler forked that serves `rendezvous` and prints to `log`, both its own then.

        OSError where the template is gone. One that goes, or cannot fork, closes `rendezvous`. One
        that is yet to be left behind forks afterwards.
        """
        socket.send_fds(self._requests, [b"f"], [rendezvous.fileno(), log])


def leave(
    requests: socket.socket,
    others: Sequence[socket.socket],
    prepare: Callable[[], None],
    run: Callable[[socket.socket], None],
) -> None:
    """Leave a template behind, which serves `requests`; they are closed in this process.

    `others` are closed in the template, which does `prepare()` first. What it forks then does
    `run(rendezvous)`, and ends. Without a template, as where this process has threads, clients find
    `requests` closed.
    """
    with requests:
        if _has_threads():
            return
        gc.freeze()  # else each collection writes to the pages of all that was imported
        with contextlib.suppress(OSError):  # no memory, or too many processes
            number = os.fork()
            if number:
                os.waitpid(number, 0)
                return
            _end_with(lambda: _become(requests, others, prepare, run))


def _become(
    requests: socket.socket,
    others: Sequence[socket.socket],
    prepare: Callable[[], None],
    run: Callable[[socket.socket], None],
) -> None:
    """Be the template, in a process whose parent has ended: not the one that left it."""
    if os.fork():
        return
    for one in others:
        one.close()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # of what ends here nothing is kept
    prepare()
    gc.freeze()
    while True:
        _, received, _, _ = socket.recv_fds(requests, 1, 2)
        if not received:
            return
        with contextlib.suppress(OSError):
            if os.fork() == 0:
                rendezvous, log = received
                _start(requests, rendezvous, log, run)
        for descriptor in received:
            os.close(descriptor)


def _start(
    requests: socket.socket, rendezvous: int, log: int, run: Callable[[socket.socket], None]
) -> NoReturn:
    """Be a compiler, in a process that was just forked from the template. Does not return."""
    requests.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # it waits for the linker
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    own = socket.socket(fileno=rendezvous)  # closed with the process, after its last words
    _end_with(lambda: run(own))


def _end_with(work: Callable[[], None]) -> NoReturn:
    """Do the work of this process, and end it: what is up the stack is that of another."""
    status = 0
    try:
        work()
    except BaseException:  # noqa: BLE001 - the process ends, and its log says of what
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _has_threads() -> bool:
    """Whether there are other threads than this one, Python's or not."""
    end = time.monotonic() + _ENDING
    try:
        while len(list(Path("/proc/self/task").iterdir())) > 1:
            if time.monotonic() > end:
                return True
            time.sleep(0.001)
    except OSError:  # without /proc nobody knows
        return True
    return False
