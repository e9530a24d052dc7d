"""The compiler's process: what it does, and how it ends, is killed, hangs and comes again."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from composite.compiler.tvm import Kernel, NotCovered
from composite.compiler_process import client as module
from composite.compiler_process.client import Client, CompilerGone, Stopped
from composite.compiler_process.tasks import CompilerError, Task
from tests.conftest import RunPython, environment

Tasks = Callable[..., Task]


@pytest.fixture
def compiler() -> Client:
    """A client with a process of its own, which ends with it."""
    return Client()


@pytest.fixture(scope="module")
def shared() -> Client:
    """A client for what leaves its process as it is."""
    return Client()


def _state(number: int) -> str:
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="ascii")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def _is_alive(number: int) -> bool:
    return _state(number) not in ("", "Z")


def _await(truth: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < end
        time.sleep(0.01)


def _number(compiler: Client) -> int:
    assert compiler.number is not None
    return compiler.number


def test_loops_objects_and_libraries(shared: Client, task: Tasks) -> None:
    loops = shared.perform(task())
    assert loops.kernel is None
    assert loops.library is None
    assert len(loops.loops.digest) == 16
    kernel = shared.perform(task(name="k")).kernel
    assert isinstance(kernel, Kernel)
    assert kernel.objects["k.o"].startswith(b"\x7fELF")
    library = shared.perform(task(name="k", runtime="")).library
    assert library is not None
    assert library.startswith(b"\x7fELF")
    number = _number(shared)
    with pytest.raises(NotCovered, match="Betainc"):
        shared.perform(task("Betainc"))
    assert shared.perform(task()).loops
    assert shared.number == number
    with pytest.raises(CompilerError, match=r"^ValueError: '1k' is no C identifier$") as raised:
        shared.perform(task(name="1k"))
    assert "Traceback" in raised.value.trace


def test_it_is_in_nobodys_way(shared: Client, task: Tasks) -> None:
    shared.perform(task())
    number = _number(shared)
    with pytest.raises(ChildProcessError):
        os.waitpid(number, os.WNOHANG)
    assert os.getsid(number) != os.getsid(0)
    assert os.getpriority(os.PRIO_PROCESS, number) > os.getpriority(os.PRIO_PROCESS, 0)
    os.kill(number, signal.SIGINT)
    shared.perform(task())
    assert shared.number == number
    environment = Path(f"/proc/{number}/environ").read_bytes()
    assert b"LD_PRELOAD" not in environment
    modules = Path(f"/proc/{number}/maps").read_text(encoding="utf-8")
    assert "libtvm" in modules
    assert "libtensorflow" not in modules


def test_one_that_was_killed_between_two_tasks_costs_nothing(compiler: Client, task: Tasks) -> None:
    compiler.perform(task())
    first = _number(compiler)
    os.kill(first, signal.SIGKILL)
    assert compiler.perform(task()).loops
    assert compiler.number not in (None, first)


def test_one_that_raised_what_it_should_not_is_not_asked_again(
    compiler: Client, task: Tasks
) -> None:
    compiler._taken(1)
    number = _number(compiler)
    size = int(Path(f"/proc/{number}/statm").read_text(encoding="ascii").split()[0])
    limit = size * os.sysconf("SC_PAGE_SIZE") + (1 << 25)  # too little to map libtvm
    _, most = resource.prlimit(number, resource.RLIMIT_AS)
    resource.prlimit(number, resource.RLIMIT_AS, (limit, most))
    with pytest.raises((CompilerError, CompilerGone)):
        compiler.perform(task())
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(number, resource.RLIMIT_AS, (most, most))
    assert compiler.perform(task()).loops
    assert compiler.number != number


def test_one_that_is_killed_at_a_task_costs_that(compiler: Client, task: Tasks) -> None:
    def kill() -> None:
        _await(lambda: compiler.number is not None)
        maps = Path(f"/proc/{_number(compiler)}/maps")
        _await(lambda: "tvm" in maps.read_text(encoding="utf-8"))  # it imports TVM, for the task
        os.kill(_number(compiler), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(CompilerGone, match="the compiler's process is gone: it ended"):
        compiler.perform(task(name="k"))
    killer.join()
    assert compiler.perform(task(name="k")).kernel


def _perform_again_and_again(compiler: Client, task: Task) -> None:
    while True:
        compiler.perform(task)


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGSEGV, "Segmentation fault"), (signal.SIGABRT, "Aborted")]
)
@pytest.mark.parametrize("module", ["libtvm_ffi", "libtvm_compiler"])
def test_one_that_a_signal_ends_says_which_and_where(
    compiler: Client, task: Tasks, number: int, name: str, module: str
) -> None:
    """At once: TVM's own handler may wait for a lock that the interrupted code holds."""

    def kill() -> None:
        _await(lambda: compiler.number is not None)
        maps = Path(f"/proc/{_number(compiler)}/maps")
        _await(lambda: module in maps.read_text(encoding="utf-8"))
        time.sleep(0.2)
        os.kill(_number(compiler), number)

    killer = threading.Thread(target=kill)
    killer.start()
    begin = time.monotonic()
    with pytest.raises(CompilerGone) as raised:
        _perform_again_and_again(compiler, task(name="k"))
    killer.join()
    assert time.monotonic() - begin < 60
    said = str(raised.value)
    assert re.search(rf"it ended: {name} Stack \(most recent call first\): File ", said), said
    assert "in _converse" in said or len(said) > 1000  # its beginning, not its end


def test_one_that_is_too_slow_says_where_it_was(task: Tasks) -> None:
    compiler = Client(limit=0.05)  # TVM's import takes longer
    with pytest.raises(CompilerGone) as raised:
        compiler.perform(task())
    said = str(raised.value)
    assert re.search(r"no answer in 0\.05 s: Timeout .* \(most recent call first\): File ", said), (
        said
    )


def test_one_that_is_stopped_is_killed(compiler: Client, task: Tasks) -> None:
    compiler.perform(task())
    (first,) = compiler._processes
    assert first is not None
    first._limit = 0.5
    os.kill(first.number, signal.SIGSTOP)
    _await(lambda: _state(first.number) == "T")
    assert compiler.perform(task()).loops
    _await(lambda: not _is_alive(first.number))


def test_a_task_that_never_ends_ends_its_process(task: Tasks) -> None:
    compiler = Client(limit=0.02)  # TVM's import takes longer
    with pytest.raises(CompilerGone, match=r"it ended|no answer in 0\.02 s"):
        compiler.perform(task())
    assert compiler.number is None


def test_one_that_ends_again_and_again_is_left_alone(task: Tasks) -> None:
    compiler = Client(limit=0.02, pause=60)
    for _ in range(3):
        with pytest.raises(CompilerGone, match="is gone"):
            compiler.perform(task())
    with pytest.raises(CompilerGone, match=r"ended 3 times in a row: it is started again in \d+ s"):
        compiler.perform(task())
    assert compiler.number is None


def test_nobody_waits_for_an_answer_that_is_not_wanted(shared: Client, task: Tasks) -> None:
    shared.perform(task())
    os.kill(_number(shared), signal.SIGSTOP)
    try:
        with pytest.raises(Stopped):
            shared.perform(task(), stopping=lambda: True)
    finally:
        os.kill(_number(shared), signal.SIGCONT)
    assert shared.perform(task(name="k")).kernel


def test_two_threads_ask_one_compiler(shared: Client, task: Tasks) -> None:
    found: dict[str, object] = {}

    def ask(name: str) -> None:
        kernel = shared.perform(task(name=name)).kernel
        assert kernel is not None
        found[name] = kernel.name

    threads = [threading.Thread(target=ask, args=(f"k{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {f"k{i}": f"k{i}" for i in range(4)}


def test_tasks_at_once_are_done_by_as_many_processes_as_may_be(
    task: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    compiler = Client(most=2)
    compiler.begin()
    compiler.begin()
    assert len(compiler._processes) == 1  # it is there already
    both_began = threading.Barrier(2)

    def ask(name: str) -> None:
        both_began.wait(30)
        assert compiler.perform(task(name=name)).kernel is not None

    threads = [threading.Thread(target=ask, args=(f"k{i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiler._processes) == 2
    assert set(compiler._processes.values()) == {0}
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    for _ in range(3):
        compiler.perform(task())
    assert len(compiler._processes) == 2


def test_a_process_that_is_soon_free_saves_the_start_of_another(
    task: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    compiler = Client(most=2)
    compiler.perform(task())
    first = _number(compiler)
    taken = compiler._taken(2)
    assert taken is not None
    giver = threading.Timer(0.05, compiler._give_back, (taken,))
    giver.start()
    assert compiler.perform(task()).loops
    giver.join()
    assert [process.number for process in compiler._processes] == [first]


_INSIDE = """
import sys
sys.executable = sys.argv[1]
import numpy as np
import composite
from composite.compiler_process import client
from tests.composite.dense_ops import dense

x, w, b = np.ones((4, 8), np.float32), np.ones((2, 8), np.float32), np.zeros(2, np.float32)
for rows in (4, 3):
    with composite.options(backend="tvm"):
        np.testing.assert_allclose(dense(x[:rows], w, b), 8.0)
assert client._client.number is None
assert "tvm" in sys.modules
"""


def test_in_the_asking_thread(run_python: RunPython, tmp_path: Path) -> None:
    variables = {module.ENVIRONMENT: "thread", "COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    done = run_python(_INSIDE, sys.executable, env=variables | {"COMPOSITE_LOG": "warning"})
    assert "composite WARNING" not in done.stderr


def test_without_an_interpreter_it_is_inside_and_says_so_once(
    run_python: RunPython, tmp_path: Path
) -> None:
    variables = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache"), "COMPOSITE_LOG": "warning"}
    done = run_python(_INSIDE, "/usr/bin/uwsgi", env=variables)
    assert done.stderr.count("composite WARNING") == 1
    assert "'/usr/bin/uwsgi', which is no Python interpreter" in done.stderr


def test_one_that_does_not_start_is_tried_again(
    compiler: Client, task: Tasks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no memory >&2\nexit 1\n", encoding="ascii")
    broken.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(broken))
        with pytest.raises(CompilerGone, match="is gone: it ended at once: no memory"):
            compiler.perform(task())
    assert compiler.perform(task()).loops
    assert compiler.number is not None


_ENDS = """
import os, sys
from composite.compiler_process import client
from composite.compiler_process.process import launched

process, template = launched(60.0)
print(process.number)
sys.stdout.flush()
if os.fork() == 0:
    sys.stdin.read()
os._exit(0)
"""


def test_it_ends_with_its_last_client(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _ENDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
        cwd=tmp_path,
    ) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        number = int(first.stdout.readline())
        assert first.wait(60) == 0
        assert _is_alive(number)  # the forked one has it still
        first.stdin.close()
        _await(lambda: not _is_alive(number))
