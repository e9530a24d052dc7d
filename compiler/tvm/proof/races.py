"""That what a task stores no other task accesses before the next barrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.owners import Owners, Path
from composite.compiler.tvm.proof.phases import Region


@dataclass
class _Shared:
    """The accesses of one phase to one half of a buffer; all of it if it has no halves."""

    half: tuple[Dim, Dim] | None
    paths: set[Path] | None = None
    loops: set[str] = field(default_factory=set)
    is_stored: bool = False
    last: tuple[Dim, bool] = (0, False)  # that had no path, or else the last one

    def add(self, other: _Shared) -> None:
        """Take the accesses to another half to be to this one."""
        if other.paths is not None:
            self.paths = other.paths if self.paths is None else self.paths & other.paths
        if (self.half and self.half[0]) != (other.half and other.half[0]):
            self.paths = set()  # they begin at different places
        self.loops |= other.loops
        self.is_stored |= other.is_stored

    def is_other(self, other: _Shared) -> bool:
        """Return whether two halves have no element in common."""
        if self.half is None or other.half is None or self.half[0] != other.half[0]:
            return False
        apart = self.half[1] - other.half[1]
        if isinstance(apart, int):
            return apart != 0
        terms = dict(apart.terms)
        return terms.pop((), 0) % 2 == 1 and all(c % 2 == 0 for c in terms.values())


class Races:
    """The regions that tasks run in, in the order of the text."""

    def __init__(self, integers: Integers, regions: Sequence[Region]) -> None:
        self._integers = integers
        self._regions = iter(regions)
        self._open: Region | None = None
        self._phase = 0
        self._task: tuple[str, Dim, Owners] | None = None
        self._shared: dict[str, list[_Shared]] = {}
        self._seen: set[tuple[str, str, Dim, bool]] = set()
        self.depth = 0
        self.overlaps = 0
        self.unproven: list[tuple[str, object, str]] = []

    @contextmanager
    def region(self) -> Iterator[None]:
        """Have a team run what is inside."""
        self._open, self._phase = next(self._regions), 0
        self.depth += 1
        yield
        self.meet()
        self.depth -= 1
        if self._open.misplaced:
            self.unproven.append(("team", "", self._open.misplaced))
        self._open = None

    def meet(self) -> None:
        """End a phase."""
        for buffer, halves in self._shared.items():
            apart = all(a is b or a.is_other(b) for a in halves for b in halves)
            if not apart:
                for other in halves[1:]:
                    halves[0].add(other)
            for one in halves if apart else halves[:1]:
                if one.is_stored and (not one.paths or len(one.loops) > 1):
                    index, is_store = one.last
                    what = "stores" if is_store else "loads"
                    self.unproven.append((buffer, index, f"{what} what may be another task's"))
        self._shared.clear()
        self._seen.clear()
        self._phase += 1

    @contextmanager
    def tasks(self, name: str, count: Dim) -> Iterator[None]:
        """Divide what is inside among threads, by a counter; its own region if no team has it."""
        if self._task is not None:
            yield  # inside of another task: it runs in it
            return
        if self._open is None:
            with self.region():
                yield from self._run(name, count)
        else:
            yield from self._run(name, count)

    def _run(self, name: str, count: Dim) -> Iterator[None]:
        self._task = (name, count, Owners(self._integers, name))
        self.depth += 1
        yield
        self.depth -= 1
        self._task = None

    def access(self, buffer: str, index: Dim, *, is_store: bool, strides: Sequence[Dim]) -> None:
        """Look at an access to a buffer that all tasks see, whose dimensions have some strides."""
        region = self._open
        if region is None or self._phase >= len(region.stored):
            return
        if buffer not in region.stored[self._phase]:
            return
        if self._task is None:
            self.unproven.append((buffer, index, "every thread of the team has this access"))
            return
        name, count, owners = self._task
        # That there is but one task is so for all of them.
        if (name, buffer, index, is_store) in self._seen or self._integers.is_at_least(1, count):
            return
        self._seen.add((name, buffer, index, is_store))
        halves = self._shared.setdefault(buffer, [])
        half = owners.half(index)
        found = next((one for one in halves if one.half == half), None)
        if found is None:
            halves.append(found := _Shared(half))
        if found.paths is not None and not found.paths:
            found.is_stored |= is_store
            return  # one before has no path, and so all of them
        inside = index if half is None else index - half[0] * half[1]
        paths, moved = owners.paths(inside, found.paths or (), strides)
        self.overlaps += moved and is_store
        found.last = (index, is_store)
        found.add(_Shared(half, paths, {name}, is_store))
