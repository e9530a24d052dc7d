"""Processes of a cluster: forked, before TensorFlow has started, from one that has imported it.

They end with the process that forked them, whatever they wait for.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
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
