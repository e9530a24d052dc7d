"""The parent's end of a worker: one process, one question at a time.

Between two questions the process stands still: threads that spin while they wait for work would
take the processors that others are timed on.
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

_LAST_WORDS = 400  # characters of a lost worker's stderr


class Lost(Exception):  # noqa: N818 - says what became of the process
    """The process has ended, or did not answer in time and was ended; the message says why."""


class Refused(Exception):  # noqa: N818 - the worker goes on
    """The worker could not answer this question; the message is what it raised."""


class Process:
    """A worker, started by its command line; a context that ends it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=dict(environment),
        )

    def ask(self, question: Mapping[str, Any], *, timeout: float = 300) -> Any:
        """The answer. Lost after so many seconds without one, Refused when it is an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Lost(self._last_words()) from None
        # Each question has one answer, so nothing is left over in the buffer of the file.
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            raise Lost(f"no answer to {question['ask']!r} within {timeout:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise Lost(self._last_words())
        self._process.send_signal(signal.SIGSTOP)
        reply = json.loads(line)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["answer"]

    def kill(self) -> None:
        """End the process by force; it is still to be closed."""
        self._process.kill()

    def close(self) -> None:
        """End the process: by the end of its questions, and by force if that does not do."""
        self._process.send_signal(signal.SIGCONT)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue  # it has ended already
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _last_words(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read()[-_LAST_WORDS:].strip().splitlines()
        return lines[-1] if lines else f"it ended with status {status}"
