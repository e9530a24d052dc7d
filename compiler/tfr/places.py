"""Formats the places of ops for a program, whose messages show them.

Not for: giving them to ops (cursor.py).
"""

from __future__ import annotations

from typing import Any

from composite.compiler.tfr.bindings import ir


class Places:
    """The places of ops as text: "ops.py:12:5".

    For an op of an inlined function where that was called, "helpers.py:3:12, called at
    ops.py:12:5". An op merged by a pass may carry several: the first names it.
    """

    def __init__(self) -> None:
        self._encoded: dict[Any, bytes] = {}

    def of(self, op: Any) -> bytes:
        """Return the place of an op, in UTF-8; one that many ops share is formatted once."""
        location = op.location
        attribute = location.attr  # equal for equal locations, which locations are not
        if attribute not in self._encoded:
            self._encoded[attribute] = _place(location).encode()
        return self._encoded[attribute]


def _place(location: Any) -> str:
    if isinstance(location, ir.FusedLoc):
        return _place(location.locations[0])
    if isinstance(location, ir.NameLoc):
        return _place(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return f"{_place(location.callee)}, called at {_place(location.caller)}"
    if isinstance(location, ir.FileLineColLoc):
        return f"{location.filename}:{location.start_line}:{location.start_col}"
    return ""
