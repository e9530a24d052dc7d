"""Processes of a cluster: forked, before TensorFlow has started, from one that has imported it.

They end with the process that forked them, whatever they wait for.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1  # prctl: the signal that a process gets when its parent ends


class Process:
    """A forked process that runs `serve(self)`, where `self` is the other end of its pipes.

    What `serve` returns is kept until the process is ended.
    """

    def __init__(self, serve: Callable[[Process], Any]) -> None:
        to_child, to_parent = os.pipe(), os.pipe()
        self.pid = os.fork()
        kept, closed = (to_child, to_parent) if self.pid == 0 else (to_parent, to_child)
        os.close(kept[1])
        os.close(closed[0])
        self._read = os.fdopen(kept[0])
        self._write = os.fdopen(closed[1], "w", buffering=1)
        if self.pid == 0:
            self._run(serve)

    def _run(self, serve: Callable[[Process], Any]) -> None:
        kept = None
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            kept = serve(self)
        except BaseException:  # noqa: BLE001 - told to the other end
            self.send({"error": traceback.format_exc()})
        finally:
            sys.stderr.flush()
            self._read.read()  # nothing comes: until the other end is closed
            del kept
            os._exit(0)  # servers do not end by themselves

    def fileno(self) -> int:
        """What `select` waits for: that the other end has sent something."""
        return self._read.fileno()

    def send(self, message: Any) -> None:
        self._write.write(json.dumps(message) + "\n")

    def receive(self) -> Any:
        """What the other end has sent. RuntimeError: it has failed."""
        line = self._read.readline()
        message = json.loads(line) if line else {"error": "the process has ended"}
        if isinstance(message, dict) and "error" in message:
            raise RuntimeError(message["error"])
        return message

    def end(self) -> None:
        """Ends the process, which may wait for another one that has failed."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def of_workers(run: Callable[[int, Process], Any], count: int = 2) -> list[Any]:
    """What processes send that are the workers of one cluster, in the order of their tasks.

    Each runs `run(task, itself)` with TF_CONFIG set. RuntimeError: one has failed.
    """
    for _ in range(4):
        try:
            return _of_workers(run, count)
        except RuntimeError as error:  # somebody took a port meanwhile
            if "gRPC server" not in str(error):
                raise
    return _of_workers(run, count)


def _of_workers(run: Callable[[int, Process], Any], count: int) -> list[Any]:
    workers = [f"localhost:{_free_port()}" for _ in range(count)]

    def serve(task: int) -> Callable[[Process], Any]:
        def own(process: Process) -> Any:
            os.environ["TF_CONFIG"] = json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": task}}
            )
            return run(task, process)

        return own

    tasks = {Process(serve(task)): task for task in range(count)}
    waiting, found = set(tasks), {}
    try:
        while waiting:  # one that has failed is heard first: the others wait for it
            for process in select.select(waiting, [], [])[0]:
                found[tasks[process]] = process.receive()
                waiting.remove(process)
        return [found[task] for task in range(count)]
    finally:
        for process in tasks:
            process.end()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        port: int = one.getsockname()[1]
        return port
