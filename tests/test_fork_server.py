"""Scripts that a fork runs, beside the same scripts in a new Python."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_SEEN = """
import atexit, inspect, os, sys, threading

def seen():
    return [__name__, sys.argv[1:], sys.path[0], sys.modules["__main__"].seen is seen]

print(seen(), os.getcwd(), os.environ["COLUMNS"], inspect.getsource(seen))
print(sys.stdin.read() == "", file=sys.stderr)
atexit.register(print, "the end")
threading.Thread(target=lambda: print("a thread")).start()
"""


def test_a_script_sees_what_it_would_see(run_python: Callable[..., Any], tmp_path: Path) -> None:
    run = lambda **how: run_python(_SEEN, "a", "b c", env={"COLUMNS": "33"}, **how)  # noqa: E731
    forked, new = run(), run(bare=True)
    assert forked.stdout == new.stdout
    assert str(["__main__", ["a", "b c"], str(tmp_path), True]) in forked.stdout
    assert forked.stdout.endswith("a thread\nthe end\n")
    assert forked.stderr == "True\n"


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("import sys\nsys.exit(3)", 3, ""),
        ("import sys\nsys.exit('why')", 1, "why\n"),
        ("raise KeyError(1)", 1, "KeyError: 1\n"),
        ("import os\nos._exit(4)", 4, ""),
        ("import os\nos.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import os\nos.abort()", -signal.SIGABRT, ""),
        ("def f(:", 1, "SyntaxError: invalid syntax\n"),
    ],
)
def test_how_it_ended(code: str, status: int, said: str, run_python: Callable[..., Any]) -> None:
    done = run_python(code, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.endswith(said)


def test_processes_share_tensorflow_and_nothing_else(run_python: Callable[..., Any]) -> None:
    code = """
import os, sys
print("tensorflow" in sys.modules, "composite" in sys.modules, os.environ.get("OF_A_TEST"))
import composite
os.environ["OF_A_TEST"] = "1"
"""
    assert [run_python(code).stdout for _ in range(2)] == ["True False None\n"] * 2


def test_what_takes_too_long_is_ended(run_python: Callable[..., Any]) -> None:
    run_python("")
    begin = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_python("import time\ntime.sleep(60)", timeout=0.2)
    assert time.monotonic() - begin < 30
    assert run_python("print(1)").stdout == "1\n"
