"""Processes that have TensorFlow imported: of what a small one takes, that import is nearly all.

A server imports it, and forks; what it forks runs a script as `python script.py` does, to the end
of the interpreter. Not for scripts about what is imported, nor for variables that Python or
TensorFlow read as they start.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any


class Server:
    """Starts, in this environment, with the first script. Runs one at a time."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` of `python *command`, which captures what it writes."""
        with tempfile.TemporaryDirectory() as folder:
            output = [Path(folder) / name for name in ("stdout", "stderr")]
            asked = {"command": command, "cwd": cwd, "env": dict(env), "output": output}
            self._ask(json.dumps(asked, default=str))
            process = self._answer()
            late = not select.select([self._answers()], [], [], timeout)[0]
            if late:
                os.kill(process, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(self._answer())
            if late:
                raise subprocess.TimeoutExpired([*command], timeout)
            texts = [path.read_text(encoding="utf-8") for path in output]
        return subprocess.CompletedProcess([*command], status, *texts)

    def close(self) -> None:
        """End the server; what it forked has ended."""
        if self._process is not None:
            self._process.communicate()

    @property
    def _server(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve\nserve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._env,
                bufsize=0,  # `select` sees what was not read
            )
        return self._process

    def _ask(self, question: str) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(f"{question}\n".encode())

    def _answer(self) -> int:
        return int(self._answers().readline())

    def _answers(self) -> IO[bytes]:
        assert self._server.stdout is not None
        return self._server.stdout


def serve() -> None:
    """Answer each request with the number of its process and, once that has ended, its status.

    Returns in the processes that are forked, too, when their scripts have ended.
    """
    import tensorflow  # noqa: F401

    gc.collect()
    gc.freeze()  # else each process would write to all of these objects' pages as it ends
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for line in requests:
        process = os.fork()
        if process == 0:
            requests.close()
            replies.close()
            _run(json.loads(line))
            return
        print(process, file=replies, flush=True)
        print(os.waitpid(process, 0)[1], file=replies, flush=True)


def _run(request: Mapping[str, Any]) -> None:
    opened = [os.open(os.devnull, os.O_RDONLY)]
    opened += [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in request["output"]]
    for number, file in enumerate(opened):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    script = request["command"][0]
    sys.argv = request["command"]
    sys.path[0] = str(Path(script).parent)
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    exec(compile(Path(script).read_text(encoding="utf-8"), script, "exec"), main.__dict__)
