"""That what a task stores no other task accesses before the next barrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.owners import Owners, Path
from composite.compiler.tvm.proof.phases import Region


@dataclass
class _Shared:
    """The accesses of one phase to one buffer."""

    paths: set[Path] = field(default_factory=set)
    tried: set[Path] = field(default_factory=set)
    extents: set[Dim] = field(default_factory=set)
    loops: set[str] = field(default_factory=set)
    seen: set[tuple[str, Dim]] = field(default_factory=set)
    is_bad: bool = False


class Races:
    """The regions that tasks run in, in the order of the text."""

    def __init__(self, integers: Integers, regions: Sequence[Region]) -> None:
        self._integers = integers
        self._regions = iter(regions)
        self._open: Region | None = None
        self._phase = 0
        self._task: tuple[str, Dim] | None = None
        self._shared: dict[str, _Shared] = {}
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
        self._shared.clear()
        self._phase += 1

    @contextmanager
    def tasks(self, counter: Poly, count: Dim) -> Iterator[None]:
        """Divide what is inside among threads, by a counter; its own region if no team has it."""
        if self._task is not None:
            yield  # inside of another task: it runs in it
            return
        if self._open is None:
            with self.region():
                yield from self._run(counter, count)
        else:
            yield from self._run(counter, count)

    def _run(self, counter: Poly, count: Dim) -> Iterator[None]:
        (name,) = counter.terms[0][0]
        self._task = (name, count)
        self.depth += 1
        yield
        self.depth -= 1
        self._task = None

    def access(self, buffer: str, index: Dim, *, is_store: bool) -> None:
        """Look at an access to a buffer that all tasks see."""
        region = self._open
        if region is None or self._phase >= len(region.stored):
            return
        if buffer not in region.stored[self._phase]:
            return
        found = self._shared.setdefault(buffer, _Shared())
        if found.is_bad:
            return
        if self._task is None:
            found.is_bad = True
            self.unproven.append((buffer, index, "every thread of the team has this access"))
            return
        name, count = self._task
        # That there is but one task is so for all of them.
        if (name, index) in found.seen or self._integers.is_at_least(1, count):
            return
        first = not found.loops
        found.loops.add(name)
        found.extents.add(count)
        paths, moved = Owners(self._integers, name).paths(index, found.tried)
        found.paths = paths if first else found.paths & paths
        found.tried |= paths
        found.seen.add((name, index))
        self.overlaps += moved and is_store
        if not found.paths or len(found.loops) > 1:
            found.is_bad = True
            what = "stores" if is_store else "loads"
            self.unproven.append((buffer, index, f"{what} what may be another task's"))
