"""The compiler's process as its clients have it: started, spoken to, killed.

A client has one end of a socket pair, and so have the processes forked from it. For each task it
makes another pair, and sends one end of it through the first in one message; so no two clients need
a lock between them, and there is no name in the file system that could be taken, full or forbidden.
The process ends when the last client end is closed, however its clients have ended. Another socket
pair leads to its template (template.py), from which further processes are forked.

It is not a child of the client's: whoever waits for all of his children would wait for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from composite.compiler_process import messages, server
from composite.compiler_process.messages import Message
from composite.compiler_process.template import Template

_START = 60.0  # seconds until the process must have said who it is
_LOOK = 0.05  # seconds between two looks whether the client still wants its answer
_GRACE = 5.0  # seconds that a process has, after its limit, to end itself and say where it was
_LAST_WORDS = 400  # bytes
_WHERE = 1200  # bytes: a signal, and the innermost frames
_FATAL = b"Fatal Python error: "  # what a process says of a signal that ends it,
_TIMEOUT = b"Timeout ("  # and of its limit: faulthandler's words

# -I and -S: neither the working folder nor the environment has a part in what is imported; modules
# are found where this process finds them. -B: it writes nothing there.
_FLAGS = ("-I", "-S", "-B")
_PROGRAM = """
import os, sys
if os.fork():
    os._exit(0)
import socket
sys.path[:] = {path!r}
from composite.compiler_process import server
server.serve(socket.socket(fileno={rendezvous}), socket.socket(fileno={requests}), {limit})
"""
_LEFT_OUT = ("LD_PRELOAD", "LD_AUDIT")  # made for the user's program
_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1"}  # NumPy's import starts some: see template.py


class CannotStart(RuntimeError):  # noqa: N818 - says what is the case
    """There is no interpreter that could be started; the message says why."""


class Gone(Exception):  # noqa: N818 - says what is the case
    """The process has ended, at its start maybe, or was killed here because it did not answer.

    Attributes:
        was_at_it: it had taken up the task.
    """

    def __init__(self, why: str, *, was_at_it: bool) -> None:
        super().__init__(why)
        self.was_at_it = was_at_it


class HungUp(Exception):  # noqa: N818 - says what is the case
    """The client wants no answer any more."""


class Process:
    """A running compiler. Not for use from outside: see `client`.

    Attributes:
        number: that of the process.
        is_forked: from a template.
        has_answered: it has done a task.
    """

    def __init__(
        self,
        limit: float,
        start: Callable[[socket.socket, int], None],
        *,
        is_forked: bool = False,
    ) -> None:
        """`start(rendezvous, log)` starts it, and raises OSError, CannotStart or Gone. Gone.

        `limit`: seconds that a task may take.
        """
        self._limit = limit
        self.is_forked = is_forked
        self.has_answered = False
        self._descriptors: list[int] = []
        # Takes what is printed, where the disk is full too.
        self._log = self._own(os.memfd_create("composite-compiler"))
        self._rendezvous, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                start(theirs, self._log)
            except OSError as error:
                raise Gone(f"it did not start: {error}", was_at_it=False) from error
        self._rendezvous.settimeout(_START)
        try:
            number, found, _, _ = socket.recv_fds(self._rendezvous, 64, 1)
        except OSError as error:
            raise Gone(f"it did not answer: {error}", was_at_it=False) from error
        if not number:
            raise Gone(f"it ended at once{self.last_words()}", was_at_it=False)
        self.number = int(number)
        self._descriptor = self._own(found[0]) if found else None
        self._beginning: _Conversation | None = None

    def begin(self) -> None:
        """Have it import what it needs for tasks, without waiting for that."""
        with contextlib.suppress(Gone):  # the first task finds that out
            self._beginning = conversation = self._conversation(server.BEGIN)
            conversation.exchange()

    def _own(self, descriptor: int) -> int:
        """The same, which is closed with this object."""
        self._descriptors.append(descriptor)
        return descriptor

    def last_words(self) -> str:
        """The end of what was printed for the task in hand, after a colon, in one line; or "".

        Of a stack its beginning: the signal, and where it came.
        """
        text = os.pread(self._log, os.fstat(self._log).st_size, 0)
        fatal = text.rfind(_FATAL)
        if fatal >= 0:
            before, text = text[:fatal][-_LAST_WORDS:], text[fatal + len(_FATAL) :][:_WHERE]
            text += b" after: " + before if before.strip() else b""
        else:
            text = text[-_LAST_WORDS:]
        words = " ".join(text.decode(errors="replace").split())
        return f": {words}" if words else ""

    def _how_it_ended(self) -> str:
        """Why there is no answer to a task from a process that has ended."""
        text = os.pread(self._log, os.fstat(self._log).st_size, 0)
        timeout = text.rfind(_TIMEOUT)
        if timeout >= 0:
            where = " ".join(text[timeout:][:_WHERE].decode(errors="replace").split())
            return f"it gave no answer in {self._limit:g} s: {where}"
        words = self.last_words()
        return f"it ended{words or ' without a word, as one does that is killed (SIGKILL)'}"

    def kill(self) -> None:
        """End it, whatever it does, a stopped one too."""
        try:
            if self._descriptor is not None:
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            else:
                os.kill(self.number, signal.SIGKILL)
        except ProcessLookupError:
            return  # it has ended by itself

    def __del__(self) -> None:  # and not earlier: another thread may be waiting for its answer
        for descriptor in self._descriptors:
            os.close(descriptor)

    def ask(self, task: Message, stopping: Callable[[], bool]) -> Message:
        """The answer to a task. Gone; HungUp when `stopping()`, asked now and then, says so."""
        conversation = self._conversation(task)
        with conversation.socket:
            return self._converse(conversation, stopping)

    def _conversation(self, message: Message) -> _Conversation:
        """A conversation that begins with a message. Gone."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._rendezvous, [b"c"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise Gone(f"it has ended{self.last_words()}", was_at_it=False) from None
        facts = {**message.facts, server.SINCE: time.monotonic()}
        return _Conversation(ours, message._replace(facts=facts))

    def _converse(self, conversation: _Conversation, stopping: Callable[[], bool]) -> Message:
        end = time.monotonic() + self._limit
        used = self._seconds_used()
        while True:
            was_at_it = conversation.is_taken_up
            has_ended = self._wait(conversation)
            is_open = conversation.exchange()
            if conversation.answer is not None:
                self.has_answered = True
                return conversation.answer
            if has_ended or not is_open:
                raise Gone(self._how_it_ended(), was_at_it=conversation.is_taken_up)
            if conversation.is_taken_up and not was_at_it:
                end = time.monotonic() + self._limit + _GRACE
            if time.monotonic() > end:
                if not conversation.is_taken_up and self._seconds_used() > used:
                    # It is at the tasks of others.
                    end, used = time.monotonic() + self._limit, self._seconds_used()
                    continue
                self.kill()
                why = f"it gave no answer in {self._limit:g} s"
                raise Gone(why, was_at_it=conversation.is_taken_up)
            if stopping():
                raise HungUp

    def _wait(self, conversation: _Conversation) -> bool:
        """Wait for what comes next, but not long. Whether the process has ended."""
        poll = select.poll()
        poll.register(conversation.socket, conversation.awaited)
        ending = self._rendezvous.fileno() if self._descriptor is None else self._descriptor
        poll.register(ending, select.POLLIN)  # of the rendezvous, its end: nothing else comes
        return any(descriptor == ending for descriptor, _ in poll.poll(_LOOK * 1000))

    def _seconds_used(self) -> float:
        """The processor time of the process; 0 if it has ended."""
        try:
            text = Path(f"/proc/{self.number}/stat").read_text(encoding="ascii")
        except OSError:
            return 0.0
        user, system = text.rpartition(")")[2].split()[11:13]
        return float(user) + float(system)


class _Conversation:
    """One task on its way, and its answer."""

    def __init__(self, connected: socket.socket, task: Message) -> None:
        connected.setblocking(False)
        self.socket = connected
        self.answer: Message | None = None
        self._unsent = memoryview(task.encoded())
        self._found = bytearray()

    @property
    def is_taken_up(self) -> bool:
        """Whether the process has begun with it."""
        return bool(self._found)

    @property
    def awaited(self) -> int:
        """The events of `poll` that there is something to do at."""
        return select.POLLIN | (select.POLLOUT if self._unsent else 0)

    def exchange(self) -> bool:
        """Send and receive what is possible at once. False if the other side has hung up."""
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                try:
                    self._unsent = self._unsent[self.socket.send(self._unsent) :]
                except (BrokenPipeError, ConnectionResetError):
                    return False
        try:
            while part := self.socket.recv(1 << 20):
                self._found += part
        except BlockingIOError:
            is_open = True
        except ConnectionResetError:
            is_open = False
        else:
            is_open = False
        self.answer = messages.decoded(self._found[len(server.STARTED) :])
        return is_open


def launched(limit: float) -> tuple[Process, Template]:
    """A compiler of a new interpreter, and what is to be its template. CannotStart, or Gone."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            process = Process(limit, partial(_launch, requests=theirs, limit=limit))
        except (CannotStart, Gone):
            ours.close()
            raise
    return process, Template(ours)


def _launch(rendezvous: socket.socket, log: int, *, requests: socket.socket, limit: float) -> None:
    """Start the program; what is started at first ends when it has forked, which makes no child."""
    program = _PROGRAM.format(
        path=_module_path(),
        rendezvous=rendezvous.fileno(),
        requests=requests.fileno(),
        limit=limit,
    )
    try:
        with subprocess.Popen(
            [_interpreter(), *_FLAGS, "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[rendezvous.fileno(), requests.fileno()],
            env={n: v for n, v in os.environ.items() if n not in _LEFT_OUT} | _WITHOUT_THREADS,
            cwd="/",  # a folder of the user's can be removed or unmounted
            start_new_session=True,  # no signal of his terminal comes there
        ) as launched:
            launched.wait(_START)
    except (FileNotFoundError, PermissionError) as error:
        raise CannotStart(str(error)) from error
    except (OSError, subprocess.SubprocessError) as error:  # no memory, or too many processes
        raise Gone(f"it did not start: {error}", was_at_it=False) from error


def _interpreter() -> str:
    """The running Python's program. CannotStart where this one is embedded in another program."""
    path = sys.executable
    if not path or getattr(sys, "frozen", False) or "python" not in Path(path).name.lower():
        raise CannotStart(f"sys.executable is {path!r}, which is no Python interpreter")
    return path


def _module_path() -> list[str]:
    """Where modules are found here, by absolute paths; our own too if a hook has found it."""
    own = str(Path(__file__).absolute().parents[2])
    found = []
    for entry in sys.path:
        with contextlib.suppress(FileNotFoundError):  # relative, and the working folder was removed
            found.append(os.path.abspath(entry))
    return [*found, own]
