"""COMPOSITE_RECORD: each kernel that a run asks for, as a line of a file.

`composite build --signatures FILE` compiles those kernels ahead of time. Requests of gradients are
left out: they belong to functions without a name.
"""

from __future__ import annotations

import os

from composite.binding import native
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.binding.records import NodeDef, record
from composite.ops.registry import OPS

ENVIRONMENT = "COMPOSITE_RECORD"

_written: dict[str, set[str]] = {}  # by file


def note(request: KernelRequest) -> None:
    """Appends the request, unless the file has it. Nothing without COMPOSITE_RECORD."""
    path = os.environ.get(ENVIRONMENT, "")
    if not path:
        return
    if OPS.current(request.op) is None:
        return
    from composite.aot import signatures

    line = signatures.recorded_line(request)
    if line is None:
        logger.info("%s is not recorded: an attribute has no form in JSON", request.op)
        return
    try:
        known = _known(path)
        if line not in known:
            with open(path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
            known.add(line)
    except OSError as error:
        logger.warning("%s=%s cannot be written: %s", ENVIRONMENT, path, error)


def flush() -> None:
    """Notes the requests that nobody will serve: a script may end before its kernels are made."""
    if not os.environ.get(ENVIRONMENT):
        return
    while reply := native.call("composite_next_request", record(timeout_ms=0)):
        note(KernelRequest.parse(NodeDef.FromString(reply)))


def _known(path: str) -> set[str]:
    """The lines of the file, read once."""
    if path not in _written:
        try:
            with open(path, encoding="utf-8") as file:
                _written[path] = set(file.read().splitlines())
        except FileNotFoundError:
            _written[path] = set()
    return _written[path]
