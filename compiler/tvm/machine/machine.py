"""A processor as schedules see it: its vectors, its caches, and what its threads cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LINE_BYTES = 64
"""Bytes that caches move at a time, on all processors that kernels are made for."""

PAGE_BYTES = 4096
"""Bytes of a page; caches of the first level find a line by its place in one."""


@dataclass(frozen=True)
class Cache:
    """A level of data cache.

    Attributes:
        size: Bytes of one.
        cores: Cores that share one.
        bandwidth: Bytes that a core reads of it in a cycle.
    """

    size: int
    cores: int
    bandwidth: float


@dataclass(frozen=True)
class Machine:
    """A processor. Times are in cycles, sizes in bytes.

    Attributes:
        name: A level of instructions, or a family of processors.
        lanes: float32 elements in a vector register.
        registers: How many vector registers there are.
        multiply_adds: Multiply-adds of whole vectors that begin in a cycle.
        latency: Cycles from a multiply-add to one that adds to its result.
        group_latency: The same of products of pairs, or of groups, of narrow numbers.
        l1: The data cache of a core.
        l2: The cache behind it.
        l3: The last cache.
        memory: Bytes that a core reads of memory in a cycle.
        loads: Loads of a vector, or of an element for all its lanes, that begin in a cycle.
        prefetch: How far ahead a stream from beyond the caches has to be asked for.
        parallel: Cycles of work from which on other threads are worth waking.
        meeting: Cycles of work of each thread from which on a barrier is worth its wait.
    """

    name: str
    lanes: int
    registers: int
    l1: Cache
    l2: Cache
    l3: Cache
    multiply_adds: float = 2.0
    loads: float = 2.0
    latency: float = 4.0
    group_latency: float = 5.0
    memory: float = 4.0
    prefetch: int = 2048
    parallel: int = 10_000
    meeting: int = 3000

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Machine:
        """Return the machine whose ``dataclasses.asdict`` these facts are.

        Raises:
            TypeError: If one of them is missing, or unknown.
        """
        caches = {level: Cache(**facts[level]) for level in ("l1", "l2", "l3") if level in facts}
        return cls(**{**facts, **caches})

    def __str__(self) -> str:
        """Return the facts as text, one a line."""
        facts = dataclasses.asdict(self)
        return "\n".join(f"{name}: {_text(value)}" for name, value in facts.items())

    @property
    def held(self) -> int:
        """Bytes that a task keeps in its core's L2 cache, beside what else passes through it."""
        return self.l2.size // 2

    @property
    def near(self) -> int:
        """Bytes above which the next kernel reads them from beyond the caches of its core."""
        return 2 * self.l2.size

    @property
    def panel(self) -> int:
        """Bytes of a packed factor that stay in the L1 cache, beside what is multiplied with it."""
        return self.l1.size * 3 // 4

    @property
    def sums(self) -> int:
        """Bytes of sums that stay in the L1 cache, beside what is added to them."""
        return self.l1.size // 2

    @property
    def swept(self) -> int:
        """Bytes that one sweep leaves in the L1 cache for the next one."""
        return self.l1.size // 4

    @property
    def kept(self) -> int:
        """Bytes that stay in the L2 cache between two uses, though other data passes through it."""
        return self.l2.size // 8


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {own}" for name, own in value.items())
    return str(value)
