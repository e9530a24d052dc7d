"""Results for a terminal of 80 columns: a figure a line. What else is known is on the page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.roofline.ceilings import Placed
from benchmarks.rows import Row

WIDTH = 80
_FIGURE = 13  # "0.812 GFLOP/s"


def lines(results: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """The rows of all subjects; those that break their bounds once more, at the end."""
    for subject, rows in results.items():
        yield f"{subject}:"
        # A work that is measured in several forms has its name in a line of its own.
        for name, some in itertools.groupby(rows, key=lambda row: row.what.partition(", ")[0]):
            same = list(some)
            if len(same) > 1:
                yield fit("", name)
            for row in same:
                rest = row.what.removeprefix(f"{name}, ") if len(same) > 1 else row.what
                yield fit(_figure(row), rest)
        yield ""
    broken = [row for rows in results.values() for row in rows if row.holds is False]
    if broken:
        yield "out of bounds:"
    for row in broken:
        bound = f">= {row.at_least:g}" if row.at_least is not None else f"<= {row.at_most:g}"
        yield fit(_figure(row), f"{bound} wanted: {row.what}")


def fit(figure: str, text: str) -> str:
    """A line; of a text that is too long the middle is left out."""
    room = WIDTH - _FIGURE - 4
    if len(text) > room:
        text = f"{text[: room // 2 - 2]} ... {text[len(text) - room + room // 2 + 3 :]}"
    return f"  {figure:>{_FIGURE}}  {text}".rstrip()


def kernels(placed: Sequence[Placed]) -> Iterator[str]:
    """The kernels on the roofline: the share of the limit that binds each, and its time."""
    yield "kernels, share of the limit that binds them:"
    for kernel in placed:
        yield fit(
            f"{kernel.share:.0%}", f"{kernel.limit}, {kernel.seconds * 1e6:.4g} us: {kernel.title}"
        )


def _figure(row: Row) -> str:
    return f"{row.value:.3g} {row.unit}".strip()
