"""The limits of a machine, and how near a kernel is to the one that binds it.

A kernel of `flops` operations that moves `bytes` takes at least the longer of two times: the
operations at the measured peak, and the bytes at the measured bandwidth of the smallest level of
memory that holds them all (a kernel is timed over and over on the same arrays).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

COMPUTE = "FMA"
MEMORY = "memory"
"""The level that no cache holds."""


@dataclass(frozen=True)
class Level:
    """A cache, or the memory: what it holds on all cores, and bytes it hands out a second."""

    name: str
    capacity: float
    bandwidth: float


@dataclass(frozen=True)
class Ceilings:
    """Operations a second, and the levels from the smallest to the memory."""

    flops: float
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Ceilings | None:
        """From the rows of `python -m benchmarks.roofline` with all threads; None without."""
        data = [row["data"] for row in rows if row["data"].get("all_threads")]
        peaks = [d["flops"] for d in data if "flops" in d]
        levels = [
            Level(d["level"], d["capacity"] or float("inf"), d["bandwidth"])
            for d in data
            if "level" in d
        ]
        if not peaks or not levels:
            return None
        return cls(max(peaks), tuple(sorted(levels, key=lambda level: level.capacity)))

    def level(self, moved: float) -> Level:
        """The smallest level that holds so many bytes."""
        return next((lv for lv in self.levels if moved <= lv.capacity), self.levels[-1])

    def least_seconds(self, flops: float, moved: float) -> tuple[float, str]:
        """The least time of a kernel, and the name of what binds it."""
        level = self.level(moved)
        compute, memory = flops / self.flops, moved / level.bandwidth
        return (compute, COMPUTE) if compute >= memory else (memory, level.name)


@dataclass(frozen=True)
class Placed:
    """A kernel on the roofline.

    Attributes:
        title: the layer.
        kernel: which strategies made it.
        seconds: what it takes.
        flops, bytes: what it must do.
        share: of the binding limit, at most about 1.
        limit: what binds it.
    """

    title: str
    kernel: str
    seconds: float
    flops: float
    bytes: float
    share: float
    limit: str


def place(ceilings: Ceilings, rows: Iterable[Mapping[str, Any]], column: str) -> list[Placed]:
    """The kernels that the rows of a comparison have in a column, each layer once, the fastest."""
    best: dict[str, Placed] = {}
    for data in (row["data"] for row in rows):
        told = data.get("columns", {}).get(column)
        if told is None:
            continue
        seconds = told["us"]["median"] * 1e-6
        least, limit = ceilings.least_seconds(data["flops"], data["bytes"])
        placed = Placed(
            data["title"], told["note"], seconds, data["flops"], data["bytes"],
            least / seconds, limit,
        )  # fmt: skip
        if placed.title not in best or seconds < best[placed.title].seconds:
            best[placed.title] = placed
    return list(best.values())
