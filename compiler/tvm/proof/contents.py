"""Integers that a function keeps in buffers of its own: what a load of one of them is."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from composite.compiler.tvm.ir.dims import Dim, Poly, symbol
from composite.compiler.tvm.proof.expressions import Expressions
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.proof.polynomials import split


@dataclass
class _Kept:
    """A buffer of integers: how many statements store to it, and what they stored so far."""

    stores: int
    time: int  # how many atoms there were when it was made
    extent: Dim | None
    ranges: list[tuple[Dim | None, Dim | None]] = field(default_factory=list)
    place: Dim | None = None
    value: Dim | None = None


@dataclass
class _Loop:
    name: str
    covers: int  # how many lanes it goes through, from the first to the last; 0 if it does not
    instances: dict[str, str] = field(default_factory=dict)  # a lane's atom, that of all lanes
    checked: list[Dim] = field(default_factory=list)
    guards: int = 0


class Contents:
    """What is known of the contents of buffers at one point of a function."""

    def __init__(self, integers: Integers, expressions: Expressions, stores: Counter[str]) -> None:
        self._integers = integers
        self._expressions = expressions
        self._stores = stores
        self._kept: dict[str, _Kept] = {}
        self._inputs: dict[tuple[str, Dim], Poly] = {}
        self._loops: list[_Loop] = []
        self._open: list[list[str]] = [[]]  # buffers whose value was stored in each open scope

    def declare(self, buffer: Any) -> None:
        """Take note of a buffer."""
        if "int" in str(buffer.dtype):
            extent = self._expressions.value(buffer.shape[0]) if len(buffer.shape) == 1 else None
            stores = self._stores.get(buffer.name, 0)
            self._kept[buffer.name] = _Kept(stores, self._integers.count, extent)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget, at the end, which values were stored inside: it may not have run."""
        self._open.append([])
        if self._loops:
            self._loops[-1].guards += 1
        yield
        if self._loops:
            self._loops[-1].guards -= 1
        for name in self._open.pop():
            self._kept[name].value = None

    @contextmanager
    def loop(self, name: str, first: Dim, count: Dim) -> Iterator[list[Dim]]:
        """Enter a loop; yields facts of all lanes of a vector that hold after it."""
        made = _Loop(name, count if first == 0 and isinstance(count, int) else 0)
        self._open.append([])
        self._loops.append(made)
        yield made.checked
        self._loops.pop()
        for kept in self._open.pop():
            self._kept[kept].value = None

    def store(self, buffer: Any, index: Dim | None, value: Dim | None) -> None:
        """Note a store."""
        kept = self._kept.get(buffer.name)
        if kept is None:
            return
        if kept.stores == 1 and index is not None:
            if value is None and kept.extent == 1 and index == 0:
                # Whatever it is, it is the same wherever it is loaded.
                value = self._expressions.fresh(buffer.name, str(buffer.dtype))
            if value is not None:
                kept.place, kept.value = index, value
                self._open[-1].append(buffer.name)
        if kept.extent != 1:
            kept.ranges.append(self._range(value, kept.time))

    def _range(self, value: Dim | None, time: int) -> tuple[Dim | None, Dim | None]:
        if value is None:
            return None, None
        low = self._integers.bound(value, time, above=False)
        return low, self._integers.bound(value, time, above=True)

    def never(self, stores: Mapping[str, int]) -> None:
        """Note stores in statements that never run."""
        for name, count in stores.items():
            self._stores[name] -= count
            if name in self._kept:
                self._kept[name].stores -= count

    def load(self, e: Any, index: Dim | None) -> Dim | None:
        """Return what a load gives, if that is an integer."""
        dtype = str(e.ty.dtype)
        if "int" not in dtype or index is None:
            return None
        kept = self._kept.get(e.source.name)
        if kept is None or kept.stores == 0:
            return self._of_input(e, index, dtype)
        if kept.value is not None and index == kept.place:
            return kept.value
        if kept.value is not None and (found := self._of_lane(kept, index)) is not None:
            return found
        made = self._expressions.fresh(e.source.name, dtype)
        if kept.extent != 1 and len(kept.ranges) == kept.stores:
            self._learn(made, kept.ranges)
        return made

    def _of_input(self, e: Any, index: Dim, dtype: str) -> Poly:
        key = (e.source.name, index)
        if key not in self._inputs:
            self._inputs[key] = self._expressions.fresh(e.source.name, dtype)
        return self._inputs[key]

    def _learn(self, made: Poly, ranges: list[tuple[Dim | None, Dim | None]]) -> None:
        low = self._end({low for low, _ in ranges}, self._integers.minimum)
        high = self._end({high for _, high in ranges}, self._integers.maximum)
        if low is not None:
            self._integers.learn(made - low)
        if high is not None:
            self._integers.learn(high - made)
        if low is not None and high is not None:
            self._expressions.trust(made, (low, high))

    def _end(self, values: set[Dim | None], end: Callable[[Dim, Dim], Dim]) -> Dim | None:
        """Return what bounds all values; None if there is one that is not known."""
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        # Numbers first: of those one is left.
        return functools.reduce(end, sorted(known, key=lambda v: (not isinstance(v, int), str(v))))

    def _of_lane(self, kept: _Kept, index: Dim) -> Dim | None:
        """Return one lane of a vector that was stored as a whole, whose number a loop counts."""
        loop = self._loops[-1] if self._loops else None
        if loop is None or index != symbol(loop.name) or not isinstance(kept.value, Poly):
            return None
        lanes = loop.covers
        if not lanes or kept.place != self._integers.lane(lanes):
            return None
        value: Dim = kept.value
        for name in {a for m, _ in kept.value.terms for a in m}:
            if self._integers.parts(name) and not self._integers.is_lane(name):
                return None  # made of lanes, perhaps
            if self._integers.is_lane(name):
                factor, rest = split(value, name)
                value = rest + factor * self._instance(loop, name, index)
        return value

    def _instance(self, loop: _Loop, name: str, index: Dim) -> Dim:
        if symbol(name) == self._integers.lane(loop.covers):
            return index
        own = f"{name}@{loop.name}"
        if own not in loop.instances:
            self._integers.atom(own)
            loop.instances[own] = name
        return symbol(own)

    def check(self, fact: Dim) -> None:
        """Note a fact without which the kernel has failed: after a loop over lanes, of them all."""
        loop = self._loops[-1] if self._loops else None
        if loop is None or loop.guards or isinstance(fact, int):
            return
        atoms = {a for m, _ in fact.terms for a in m}
        if loop.name in atoms or not atoms & loop.instances.keys():
            return
        for own in atoms & loop.instances.keys():
            factor, rest = split(fact, own)
            fact = rest + factor * symbol(loop.instances[own])
        loop.checked.append(fact)
