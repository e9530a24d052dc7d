"""The template: compilers that are forked from it, how it and they end, and where there is none."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from composite.compiler.tvm import Kernel
from composite.compiler_process import client as module
from composite.compiler_process import process as starting
from composite.compiler_process.client import Client, CompilerGone
from composite.compiler_process.process import Gone, Process
from composite.compiler_process.tasks import Task
from composite.compiler_process.template import Template
from tests.conftest import RunPython, environment

Tasks = Callable[..., Task]


def _fields(number: int) -> list[str]:
    """What the system tells of a process from its state on; nothing of one that is gone."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="ascii")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _session(number: int) -> set[int]:
    """The processes of the session of one, those included that ended and that nobody waited for."""
    own = _fields(number)[3]
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _fields(int(folder.name))
        if fields and fields[3] == own:
            found.add(int(folder.name))
    return found


def _are_gone(numbers: set[int]) -> bool:
    return not any(map(_fields, numbers))


def _await(truth: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.0)


class Pair:
    """A client whose first process is busy, and the template that this one has left."""

    def __init__(self, task: Task) -> None:
        self.client = Client(most=4)
        self.client.perform(task)
        self._busy = self.taken()
        self.first = self._busy.number
        _await(lambda: len(_session(self.first)) == 2)
        (self.template,) = _session(self.first) - {self.first}

    def taken(self) -> Process:
        process = self.client._taken(4)
        assert process is not None
        return process

    def other(self) -> int:
        """The process that was started last, after the first."""
        assert len(self.client.numbers) > 1
        return self.client.numbers[-1]


@pytest.fixture
def pair(task: Tasks) -> Iterator[Pair]:
    """One whose processes all end with it."""
    found = Pair(task())
    numbers = _session(found.first)
    yield found
    numbers |= _session(found.first)
    del found.client, found._busy
    _await(lambda: _are_gone(numbers))


def test_a_further_compiler_is_forked_and_ready_at_once(pair: Pair, task: Tasks) -> None:
    began = time.monotonic()
    process = pair.taken()
    took = time.monotonic() - began
    assert process.is_forked
    assert took < 1.0
    maps = Path(f"/proc/{process.number}/maps").read_text(encoding="utf-8")
    assert "libtvm_compiler" in maps
    assert "libtensorflow" not in maps
    pair.client._give_back(process)
    kernel = pair.client.perform(task(name="k", runtime="")).kernel  # whose linker it waits for
    assert isinstance(kernel, Kernel)
    assert pair.other() == process.number
    assert pair.client.numbers == [pair.first, process.number]


def test_it_is_in_nobodys_way(pair: Pair, task: Tasks) -> None:
    pair.client.perform(task())
    for number in (pair.template, pair.other()):
        with pytest.raises(ChildProcessError):
            os.waitpid(number, os.WNOHANG)
        assert os.getsid(number) != os.getsid(0)
        first = os.getpriority(os.PRIO_PROCESS, pair.first)
        assert os.getpriority(os.PRIO_PROCESS, number) == first
        os.kill(number, signal.SIGINT)
    number = pair.other()
    pair.client.perform(task())
    assert pair.client.numbers == [pair.first, number]
    assert len(list(Path(f"/proc/{pair.template}/task").iterdir())) == 1


def test_the_pages_of_the_imports_are_shared(pair: Pair) -> None:
    """What only one process has is a small part of what it has mapped."""
    text = Path(f"/proc/{pair.template}/smaps_rollup").read_text(encoding="ascii")
    own = sum(map(int, re.findall(r"^Private_\w+: +(\d+) kB$", text, re.MULTILINE)))
    assert 0 < own < 32 << 10  # KiB; an import takes more than 100 MiB


def _perform_again_and_again(compiler: Client, task: Task) -> None:
    while True:
        compiler.perform(task)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGSEGV, "it ended: Segmentation fault Stack"),
        (signal.SIGABRT, "it ended: Aborted Stack"),
        (signal.SIGKILL, "it ended without a word, as one does that is killed"),
    ],
)
def test_a_forked_one_that_a_signal_ends_is_noticed_at_once(
    pair: Pair, task: Tasks, number: int, said: str
) -> None:
    pair.client.perform(task())
    other = pair.other()

    def kill() -> None:
        time.sleep(0.3)
        os.kill(other, number)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(CompilerGone, match=re.escape(said)):
        _perform_again_and_again(pair.client, task(name="k"))
    killer.join()
    _await(lambda: _are_gone({other}))  # nobody leaves it unwaited for
    assert pair.client.perform(task(name="k")).kernel
    assert pair.other() != other
    assert _session(pair.first) == {pair.first, pair.template, pair.other()}


def test_one_of_two_that_is_killed_costs_the_other_nothing(pair: Pair, task: Tasks) -> None:
    one, another = pair.taken(), pair.taken()
    os.kill(one.number, signal.SIGKILL)
    _await(lambda: _are_gone({one.number}))
    assert another.ask(task(name="k").message(), lambda: False).facts["kernel"]
    with pytest.raises(Gone):
        one.ask(task(name="k").message(), lambda: False)


def test_one_that_is_stopped_at_its_task_is_killed(pair: Pair, task: Tasks) -> None:
    pair.client.perform(task())
    other = pair.other()
    for process in pair.client._processes:
        process._limit = 0.5
    os.kill(other, signal.SIGSTOP)
    _await(lambda: _fields(other)[0] == "T")
    assert pair.client.perform(task()).loops
    _await(lambda: _are_gone({other}))


def test_without_its_template_a_compiler_is_started_anew(pair: Pair, task: Tasks) -> None:
    os.kill(pair.template, signal.SIGKILL)
    _await(lambda: _are_gone({pair.template}))
    assert pair.client.perform(task(name="k")).kernel
    launched = next(p for p in pair.client._processes if p.number == pair.other())
    assert not launched.is_forked
    assert pair.taken().number == launched.number
    assert pair.taken().is_forked  # from the template that this one has left
    os.kill(launched.number, signal.SIGKILL)


def test_a_template_that_does_not_answer_is_not_waited_for_for_ever(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.kill(pair.template, signal.SIGSTOP)
    _await(lambda: _fields(pair.template)[0] == "T")
    monkeypatch.setattr(starting, "_START", 0.2)
    assert pair.client._forked() is None
    os.kill(pair.template, signal.SIGCONT)


def test_forks_are_given_up_where_one_did_no_task(pair: Pair, task: Tasks) -> None:
    process = pair.taken()
    assert process.is_forked
    pair.client._give_back(process)
    os.kill(process.number, signal.SIGSTOP)
    killer = threading.Timer(0.3, os.kill, (process.number, signal.SIGKILL))
    killer.start()
    assert pair.client.perform(task()).loops  # of a new one: that one had not begun
    killer.join()
    assert pair.other() != process.number
    assert not any(process.is_forked for process in pair.client._processes)


def test_threads_start_one_process_while_another_starts(task: Tasks) -> None:
    """The client is not blocked meanwhile, and starts no more than there may be."""
    compiler = Client(most=2)
    threads = [
        threading.Thread(target=compiler.perform, args=(task(name=f"k{i}"),)) for i in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiler.numbers) == 2
    assert set(compiler._processes.values()) == {0}
    assert [process.is_forked for process in compiler._processes] == [False, True]


_TREE = """
import os, signal, sys
from composite.compiler_process import client
from tests.composite.compiler_process.test_template import simple

client._PATIENCE = 0.0
asking = client.Client(most=4)
asking.perform(simple())
taken = [asking._taken(4) for _ in range(2)]
forked = os.fork()
if forked == 0:
    asking.in_child()
    taken += [asking._taken(4) for _ in range(4)]
    print(*asking.numbers, flush=True)
    asking.perform(simple())
    sys.stdin.read()
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_all_end_with_the_last_of_forked_users_which_are_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _TREE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
        cwd=tmp_path,
    ) as user:
        assert user.stdout is not None
        assert user.stdin is not None
        numbers = set(map(int, user.stdout.readline().split()))
        assert user.wait(60) == -signal.SIGKILL
        assert len(numbers) == 4
        session = _session(min(numbers))
        assert len(session - numbers) == 1  # the template
        user.stdin.close()  # the last one ends
        _await(lambda: _are_gone(session))


def simple() -> Task:
    """A task for a client in a script."""
    from tests.composite.compiler_process import conftest

    return conftest.task_of_one_op("Relu")


# A template of a process that has imported nothing: what is forked says what it finds.
_LEAVES = """
import os, signal, socket, sys, threading, time, faulthandler
from composite.compiler_process import template

requests = socket.socket(fileno=int(sys.argv[1]))
kind = sys.argv[2]

def run(rendezvous):
    if kind == "raises":
        raise ValueError("of a compiler")
    if kind == "slow":
        faulthandler.dump_traceback_later(0.2, exit=True, file=2)
        time.sleep(60)
    rendezvous.sendall(b"here")
    print("printed")

if kind == "threads":
    threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
template.leave(requests, [], lambda: None, run)
os._exit(0)
"""


def _asked(kind: str, tmp_path: Path) -> tuple[bytes, str]:
    """What a process says that was forked from a template of another, and what it prints."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    own, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    log = tmp_path / "log"
    with ours, own, log.open("wb") as file:
        with theirs, others:
            command = [sys.executable, "-c", _LEAVES, str(theirs.fileno()), kind]
            with subprocess.Popen(command, env=environment(), pass_fds=[theirs.fileno()]) as first:
                Template(ours).fork(others, file.fileno())
                assert first.wait(60) == 0
        own.settimeout(30)
        said = own.recv(10)
    return said, log.read_text(encoding="utf-8")


def test_what_is_forked_prints_to_its_own_log(tmp_path: Path) -> None:
    said, _ = _asked("works", tmp_path)
    assert said == b"here"
    _await(lambda: (tmp_path / "log").read_text(encoding="utf-8") == "printed\n")


def test_an_error_of_what_is_forked_is_its_last_words(tmp_path: Path) -> None:
    said, printed = _asked("raises", tmp_path)
    assert said == b""
    assert printed.endswith("ValueError: of a compiler\n")


def test_the_limit_of_what_is_forked_holds(tmp_path: Path) -> None:
    said, printed = _asked("slow", tmp_path)
    assert said == b""
    assert printed.startswith("Timeout (0:00:00.2")


def test_a_process_with_threads_leaves_no_template(tmp_path: Path) -> None:
    assert _asked("threads", tmp_path) == (b"", "")


def test_a_compiler_that_was_not_imported_whole_leaves_none(task: Tasks) -> None:
    compiler = Client(limit=0.02, most=2)  # TVM's import takes longer
    with contextlib.suppress(CompilerGone):
        compiler.perform(task())
    assert compiler._template is not None
    with pytest.raises(Gone):
        Process(60.0, compiler._template.fork)


_NO_BLAS_THREADS = """
from composite.compiler_process import client
from tests.composite.compiler_process.test_template import simple

asking = client.Client()
asking.perform(simple())
print(len(__import__("os").listdir(f"/proc/{asking.number}/task")))
"""


def test_numpy_starts_no_threads_in_a_compiler(run_python: RunPython) -> None:
    done = run_python(_NO_BLAS_THREADS, env={"OPENBLAS_NUM_THREADS": "2"})
    assert done.stdout == "1\n"
