"""Ours beside TensorFlow, ONNX Runtime, OpenVINO and PyTorch: every work of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benchmarks.rows import Row, emit
from benchmarks.sides.team import KERNEL, OURS, AnyWork, Comparison, Team
from benchmarks.timing import KINDS, QUICK, Spread
from benchmarks.works import catalogue
from benchmarks.works.work import Work

SECONDS = 1.5
"""How long the sides take turns at a work."""


def rows() -> Iterator[Row]:
    """The fastest of the others over ours, for each work; first who takes part."""
    with Team() as team:
        yield who(team)
        for works in catalogue.groups(quick=QUICK, kinds=KINDS):
            for work in works:
                yield row(team.compare(work, seconds=SECONDS))


def who(team: Team) -> Row:
    """The versions of all sides, and why one is missing."""
    parts = [f"{name} {version}" for name, version in team.versions.items()]
    parts += [f"{module} is missing: {reason}" for module, reason in team.missing.items()]
    data = {"versions": team.versions, "missing": team.missing}
    return Row("sides", len(team.versions), "", detail="; ".join(parts), data=data)


def row(comparison: Comparison[Work]) -> Row:
    """One line of the table: the fastest of the others over ours."""
    work, timings = comparison.work, comparison.timings
    others = [column for column in timings.seconds if not column.startswith((OURS, KERNEL))]
    if OURS not in timings.seconds or not others:
        return Row(f"{work.title}, {work.form}", 0, "", detail=refusals(comparison))
    best = timings.fastest(others)
    return Row.of(
        f"{work.title}, {work.form}: {best} / {OURS}",
        timings.ratio(best, OURS),
        "x",
        detail=_detail(comparison),
        data=data_of(comparison),
    )


def data_of(comparison: Comparison[Work]) -> dict[str, Any]:
    """A comparison as JSON."""
    work = comparison.work
    return {
        "work": asdict(work),
        "title": work.title,
        "form": work.form,
        "flops": work.layer.flops(work.shape),
        "bytes": work.layer.bytes(work.shape),
        "columns": columns_of(comparison),
        "overhead_us": _overhead(comparison),
        "refused": comparison.refused,
    }


def columns_of(comparison: Comparison[AnyWork]) -> dict[str, dict[str, Any]]:
    """What is known of each column: its microseconds, and how many times ours these are."""
    timings = comparison.timings
    return {
        column: {
            **told,
            "us": asdict(timings.microseconds(column)),
            "ratio": asdict(timings.ratio(column, OURS)),
        }
        for column, told in comparison.columns.items()
    }


def _overhead(comparison: Comparison[Work]) -> dict[str, float] | None:
    """What a node of ours costs above its kernel, paired by round; None without a kernel."""
    seconds = comparison.timings.seconds
    if KERNEL not in seconds:
        return None
    return asdict(Spread.of((seconds[OURS] - seconds[KERNEL]) * 1e6))


def _detail(comparison: Comparison[Work]) -> str:
    timings = comparison.timings
    parts = []
    for column in timings.seconds:
        setting = comparison.columns[column]["setting"]
        shown = f"{column} ({setting})" if setting else column
        parts.append(f"{shown} {timings.microseconds(column).median:.4g}")
    text = "us: " + ", ".join(parts) + f"; {comparison.columns[OURS]['note']}"
    refused = refusals(comparison)
    return f"{text}; {refused}" if refused else text


def refusals(comparison: Comparison[AnyWork]) -> str:
    """Who has no column, and why."""
    return "; ".join(f"without {module}: {why}" for module, why in comparison.refused.items())


if __name__ == "__main__":
    emit(rows())
