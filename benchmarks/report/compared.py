"""Reads the ratios back from a page of docs/performance/, as the README and the index need them.

A page holds the median of each ratio with two decimals. That is enough for the README's table and
for the picture; whatever needs more takes the results that `--json` keeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.report import tables

_HEADER = "| layer | ours, µs |"
_MODELS_HEADER = "| model | accelerated, µs |"
_MODEL_COLUMNS = 6  # without regions alone, and what was chosen
_ONE = re.compile(r"\| ([^|]+), batch 1 \|")
_MEDIAN = re.compile(r"[\d.]+")


class Compared(NamedTuple):
    """One work of the page: its family (the heading above it), its name, and a ratio per peer."""

    family: str
    name: str
    ratios: dict[str, float]

    @property
    def eager(self) -> bool:
        """Whether an eager call was timed; otherwise it is a node in a stack of layers."""
        return ", a call" in self.name


def read(page: str) -> list[Compared]:
    """All works of the comparison tables, in the page's order. ValueError if there is none."""
    found: list[Compared] = []
    family = ""
    peers: list[str] = []
    for line in page.splitlines():
        if line.startswith("#"):
            family, peers = line.lstrip("# "), []
        elif line.startswith(_HEADER):
            peers = _cells(line)[2:-1]
        elif peers and line.startswith("| ") and not line.startswith("| ---"):
            name, _, *ratios, _ = _cells(line)
            medians = {p: m for p, cell in zip(peers, ratios, strict=True) if (m := _median(cell))}
            found.append(Compared(family, name, medians))
    if not found:
        raise ValueError("the page has no table of layers beside the peers")
    return found


def summary(page: str) -> list[str]:
    """The README's table: the median ratio of each peer for all works, for nodes, and for calls."""
    works = read(page)
    nodes = [work for work in works if not work.eager]
    calls = [work for work in works if work.eager]
    header = [
        "time of the peer / time of tf-composite",
        f"all {len(works)}",
        f"{len(nodes)} as a node in a graph",
        f"{len(calls)} as an eager call",
    ]
    rows = [
        [peer, *(f"{median(ratios(some, peer)):.2f}" for some in (works, nodes, calls))]
        for peer in tables.PEERS
    ]
    return tables.table(header, rows)


def models(page: str) -> list[str]:
    """The README's table of models: each of the page's at a batch of 1, without how times vary."""
    header: list[str] = []
    rows = []
    for line in page.splitlines():
        if line.startswith(_MODELS_HEADER):
            header = _cells(line)[:_MODEL_COLUMNS]
        elif header and (found := _ONE.match(line)):
            _, time, *others = _cells(line)[:_MODEL_COLUMNS]
            times = [f"{_median(cell):.2f}" if _median(cell) else cell for cell in others]
            rows.append([found[1], time.partition(" ")[0], *times])
    if not rows:
        raise ValueError("the page has no table of models")
    return tables.table(["model, batch 1", *header[1:]], rows)


def ratios(works: Sequence[Compared], peer: str) -> list[float]:
    """A peer's ratios, of the works that it has one for."""
    return [work.ratios[peer] for work in works if peer in work.ratios]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _median(cell: str) -> float | None:
    """The median of `1.42 (1.24..1.63)`, which is bold below 1; None where nothing was measured."""
    if cell == tables.MISSING:
        return None
    found = _MEDIAN.search(cell)
    if found is None:
        raise ValueError(f"{cell!r} is not a ratio")
    return float(found[0])
