"""Options: which path the calls made under them may take.

The choice is captured where the call is made: into the attributes of a graph node while tracing,
and read from a thread-local of the runtime by an eager call. An eager call that may run on another
thread, or in another process, is made as a node. The choice never reaches back to nodes that exist.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from composite.binding import native, records
from composite.binding.environment import BACKENDS, NUMERICS, is_xla_choice
from composite.binding.records import AttrValue, record

# How the runtime is told of a choice between yes, no and nothing.
_REGIONS = {None: "", True: "on", False: "off"}


class _Local(threading.local):
    backend = ""  # "" : nothing chosen here, so the process default holds
    numerics = ""
    xla = ""
    regions = ""
    portable = False
    check_numerics = False


_local = _Local()

# An item for each `options` that is entered, of all threads: where none is, a call need not ask for
# its own thread's.
ENTERED: list[None] = []


@contextmanager
def options(  # noqa: PLR0913 - one for each option
    *,
    backend: str | None = None,
    numerics: str | None = None,
    xla: float | str | None = None,
    regions: bool | None = None,
    portable: bool | None = None,
    check_numerics: bool | None = None,
) -> Iterator[None]:
    """`composite.options`, which also starts what makes kernels, and loads what makes calls."""
    _check("backend", backend, BACKENDS)
    _check("numerics", numerics, NUMERICS)
    _check_xla(xla)
    if regions not in _REGIONS:
        raise ValueError(f"composite.options: regions={regions!r} is not True or False")
    for option, value in (("portable", portable), ("check_numerics", check_numerics)):
        if value not in (None, True, False):
            raise ValueError(f"composite.options: {option}={value!r} is not True or False")
    outer = (_local.backend, _local.numerics, _local.regions, _local.xla)
    outer_calls = _local.portable, _local.check_numerics
    ENTERED.append(None)
    try:  # an interruption may come at any line
        _choose(
            outer[0] if backend is None else backend,
            outer[1] if numerics is None else numerics,
            outer[2] if regions is None else _REGIONS[regions],
            outer[3] if xla is None else str(xla),
        )
        _local.portable = outer_calls[0] if portable is None else portable
        _local.check_numerics = outer_calls[1] if check_numerics is None else check_numerics
        yield
    finally:
        ENTERED.pop()
        _local.portable, _local.check_numerics = outer_calls
        _choose(*outer)


def _check(option: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"composite.options: {option}={value!r} is not one of {choices}")


def _check_xla(value: float | str | None) -> None:
    if value is not None and not is_xla_choice(value):
        raise ValueError(
            f'composite.options: xla={value!r} is not "never" or a number of seconds, 0 or more'
        )


def _choose(backend: str, numerics: str, regions: str, xla: str) -> None:
    request = record(backend=backend, numerics=numerics, regions=regions, xla=xla, thread=True)
    native.call("composite_set_options", request)
    _local.backend, _local.numerics, _local.regions, _local.xla = backend, numerics, regions, xla


def of_thread() -> dict[str, Any]:
    """What this thread has chosen, as `options` takes it."""
    regions = next(kept for kept, name in _REGIONS.items() if name == _local.regions)
    return {
        "backend": _local.backend or None,
        "numerics": _local.numerics or None,
        "xla": _local.xla or None,
        "regions": regions,
        "portable": _local.portable,
        "check_numerics": _local.check_numerics,
    }


def chosen() -> bool:
    """Whether this thread has chosen any option."""
    return bool(_local.backend or _local.numerics or _local.xla)


_TERM_BY_TERM = ("strict", "invariant")
"""Numerics under which gradients are TensorFlow's, term by term: strict ones have its bits, and
what is made of the terms otherwise depends on which dims are known."""


def is_strict(attrs: Mapping[str, AttrValue]) -> bool:
    """Whether the gradient of a graph node with these attributes is TensorFlow's, term by term."""
    chosen = attrs[records.NUMERICS].s.decode() if records.NUMERICS in attrs else ""
    return (chosen or _process_numerics()) in _TERM_BY_TERM


def calls_are_strict() -> bool:
    """The same of this thread's eager calls."""
    return (_local.numerics or _process_numerics()) in _TERM_BY_TERM


@functools.cache
def _process_numerics() -> str:
    """What the environment chose when it was asked first, as the runtime has it."""
    return os.environ.get("COMPOSITE_NUMERICS", "")


@contextmanager
def resting_variables() -> Iterator[None]:
    """Has variables count as at rest from the first call in the context that reads them.

    Else calls wait for that, and ask meanwhile for kernels that make no use of it. Of the process.
    """
    native.call("composite_presume_rest", record(begin=True))
    try:
        yield
    finally:
        native.call("composite_presume_rest", record(begin=False))


def portable() -> bool:
    """Whether this thread wants calls of TensorFlow's own ops in place of nodes."""
    return _local.portable or _local.check_numerics


def insists() -> bool:
    """Whether this thread wants kernels or errors."""
    return _local.backend == "tvm"


def node_attrs() -> dict[str, AttrValue]:
    """What a graph node made now carries of the options of this thread."""
    attrs = {}
    if _local.backend:
        attrs[records.BACKEND] = AttrValue(s=_local.backend.encode())
    if _local.numerics:
        attrs[records.NUMERICS] = AttrValue(s=_local.numerics.encode())
    if _local.xla:
        attrs[records.XLA_WAIT] = AttrValue(s=_local.xla.encode())
    if portable():
        how = records.CHECKED if _local.check_numerics else records.PLAIN
        attrs[records.PORTABLE] = AttrValue(s=how)
    return attrs
