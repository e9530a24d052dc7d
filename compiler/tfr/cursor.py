"""Where ops are built: the insertion point, the location of a line of the source, recordings.

The point and the place are set by context managers, so that the code that builds an op shows in
which block it goes and which line it comes from.

Not for: which ops there are (builder.py), building again what was recorded (recipe.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from composite.compiler.tfr import dialect
from composite.compiler.tfr.bindings import ir


@dataclasses.dataclass(frozen=True)
class Place:
    """A point of the user's source: file relative to the module's root, 1-based line and column.

    `caller` is where the function that it stands in was called, if that was inlined; `within` names
    a function of the library whose ops are given the place of its call.
    """

    file: str
    line: int
    column: int
    caller: Place | None = None
    within: str = ""


class Recording:
    """The ops that are appended at one insertion point, in their order.

    `whole` says that they, with their blocks, are all that was built: no function of the module.
    """

    def __init__(self, point: Any) -> None:
        self.ops: list[Any] = []
        self.whole = True
        self._point = point

    def note(self, op: Any, point: Any) -> None:
        """Note an op, if this is the insertion point that it was appended at."""
        if point is self._point:
            self.ops.append(op)


class _Scope:
    """Sets an attribute of a cursor for a `with`; a plain class, as every node enters one."""

    __slots__ = ("_cursor", "_inner", "_name", "_outer")

    def __init__(self, cursor: Cursor, name: str, inner: Any) -> None:
        self._cursor = cursor
        self._name = name
        self._inner = inner

    def __enter__(self) -> None:
        self._outer = getattr(self._cursor, self._name)
        setattr(self._cursor, self._name, self._inner)

    def __exit__(self, *_: object) -> None:
        setattr(self._cursor, self._name, self._outer)


class Cursor:
    """Appends ops at a point of a module of its own."""

    def __init__(self) -> None:
        self.context = dialect.context()
        self._unknown = ir.Location.unknown(self.context)
        self.module = ir.Module.create(self._unknown)
        self._point = ir.InsertionPoint(self.module.body)
        self._place: Place | None = None
        self._locations: dict[Place, Any] = {}
        self._located: tuple[Place | None, Any] = (None, self._unknown)
        self._recordings: list[Recording] = []

    def at(self, place: Place | None) -> _Scope:
        """Set the location of the ops that are built inside the `with`."""
        return _Scope(self, "_place", place)

    @property
    def place(self) -> Place | None:
        """The location that is given to ops."""
        return self._place

    def locate(self, place: Place | None) -> Any:
        """Return a location as MLIR has it."""
        if place is self._located[0]:  # that of the op before, most often
            return self._located[1]
        location = self._unknown if place is None else self._location(place)
        self._located = (place, location)
        return location

    def _location(self, place: Place) -> Any:
        if place not in self._locations:
            location = ir.Location.file(place.file, place.line, place.column, self.context)
            if place.caller is not None:
                location = ir.Location.callsite(
                    location, [self._location(place.caller)], self.context
                )
            if place.within:
                location = ir.Location.name(place.within, location, self.context)
            self._locations[place] = location
        return self._locations[place]

    def into(self, block: Any) -> _Scope:
        """Append the ops that are built inside the `with` to this block."""
        return _Scope(self, "_point", ir.InsertionPoint(block))

    def op(
        self,
        name: str,
        operands: Sequence[Any] = (),
        results: Sequence[Any] = (),
        /,
        regions: int = 0,
        attached: bool = True,
        **attributes: Any,
    ) -> Any:
        """Build any op here; if not `attached`, one that is not in a block yet."""
        operands, results, location = list(operands), list(results), self.locate(self._place)
        if attached:
            return self.append(name, operands, results, attributes, regions, location)
        return ir.Operation.create(
            name, results, operands, attributes, regions=regions, loc=location, ip=False
        )

    def append(  # noqa: PLR0913, PLR0917 - an op has that many parts
        self,
        name: str,
        operands: list[Any],
        results: list[Any],
        attributes: dict[str, Any],
        regions: int,
        location: Any,
    ) -> Any:
        """Build an op of these parts here, at an MLIR location: what `op` does, and a recipe."""
        made = ir.Operation.create(
            name, results, operands, attributes, regions=regions, loc=location, ip=self._point
        )
        self._record(made)
        return made

    def insert(self, op: Any) -> None:
        """Insert an op here that is not in a block yet."""
        self._point.insert(op)
        self._record(op)

    def _record(self, op: Any) -> None:
        for recording in self._recordings:
            recording.note(op, self._point)

    @contextlib.contextmanager
    def recording(self) -> Iterator[Recording]:
        """Record the ops that are appended here inside the `with`."""
        recording = Recording(self._point)
        self._recordings.append(recording)
        try:
            yield recording
        finally:
            self._recordings.remove(recording)

    def spoil_recordings(self) -> None:
        """Note that something is built outside of one block, so that no recording is complete."""
        for recording in self._recordings:
            recording.whole = False
