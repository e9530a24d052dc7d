"""The kernels that can be made of one request, and how one is made: written, built, checked.

Not for: which of them to make (`search`), or what they take (`local`, `remote`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.compiler import tvm as backend
from composite.compiler_process.tasks import Loops
from composite.kernels import cpu, produce
from composite.kernels import key as keys


class Rejected(Exception):  # noqa: N818 - the verdict on a candidate
    """A candidate cannot be made, or does not compute what it should; the message says which."""


class Built(NamedTuple):
    """A kernel that was checked: its record, and the library that it is in."""

    code: str  # the digest of its loops
    record: KernelRecord
    kernel: backend.Kernel
    library: Path


class Space:
    """The kernels of a request for a target, in libraries of a folder.

    Raises, when it is made, NotCovered if there is none, or Inexpandable.
    """

    def __init__(self, request: KernelRequest, target: backend.Target, folder: Path) -> None:
        self.request = request = produce.sized(request, target)
        self.target = target
        self._folder = folder
        self._oracle: Any = None
        self.seconds = 0.0  # that the last kernel took to compile and link
        self.identity = produce.identity(request)
        self.default = self.write({})

    def write(self, choices: backend.Chosen) -> Loops:
        """The loops of the kernel with these choices, as far as it has them."""
        return produce.write(self.request, self.target, choices)

    def point(self, choices: backend.Chosen) -> Loops | None:
        """`write`, or None where these choices leave no kernel."""
        try:
            return self.write(choices)
        except backend.NotCovered:
            return None

    def build(self, written: Loops) -> Built:
        """Generates code, links it and compares it with the expansion. Rejected when that fails."""
        # Not the name of the kernel that calls get: the process may have that one.
        name = f"{produce.kernel_name(self.request)}_trial_{written.digest}"
        path = self._folder / f"{name}.so"
        start = time.monotonic()
        try:
            kernel = produce.compile_object(self.request, self.target, name, written.choices)
            backend.link(kernel, path, runtime=native.library_path())
            self.seconds = time.monotonic() - start
            if self._oracle is None:
                self._oracle = produce.oracle(self.request, kernel.minimums, kernel.divisors)
            produce.compare(self._oracle, kernel, path)
        except Exception as error:  # a candidate is worth a line, not the whole search
            raise Rejected(f"{type(error).__name__}: {error}") from error
        record = cpu.record_of(self.request, kernel, self.target)
        digest = keys.sha256(path.read_bytes())
        record = replace(record, library=str(path), library_sha256=digest)
        return Built(written.digest, record, kernel, path)
