"""Pieces of a Markdown report: cells and tables of what was measured, as lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.roofline.ceilings import Placed
from benchmarks.works.model_work import PLAIN, REGIONS, XLA

Data = Mapping[str, Any]

OURS, KERNEL, IN_FUNCTION = "ours", "bare kernel", "ours, tf.function"
PEERS = ("TensorFlow", "ONNX Runtime", "OpenVINO", "PyTorch")
MODEL_WAYS = (PLAIN, XLA, "ONNX Runtime", "OpenVINO", REGIONS)
MISSING = "–"  # noqa: RUF001 - a dash in a cell


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; all columns but the first are numbers, to the right."""
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *escaped]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(mantissa) * 10 ** int(exponent):.{max(0, 2 - int(exponent))}f}"


def spread(figures: Mapping[str, float] | None) -> str:
    """A median with its quartiles."""
    if figures is None:
        return MISSING
    return f"{number(figures['median'])} ({number(figures['low'])}..{number(figures['high'])})"


def ratio(figures: Mapping[str, float] | None) -> str:
    """How many times as long as ours, with quartiles; bold where that is less."""
    if figures is None:
        return MISSING
    median, low, high = (f"{figures[name]:.2f}" for name in ("median", "low", "high"))
    shown = f"**{median}**" if figures["median"] < 1 else median
    return f"{shown} ({low}..{high})"


def microseconds(data: Data, column: str) -> Mapping[str, float] | None:
    """The times of a column; None where a work has no such column."""
    told = data["columns"].get(column)
    return None if told is None else told["us"]


def comparison(works: Sequence[Data]) -> list[str]:
    """Ours in microseconds, the peers as multiples of it, and what ran on our side."""
    rows = []
    for data in works:
        told = data["columns"][OURS]
        name = f"{data['title']}, {data['form']}"
        ran = told["note"].partition(":")[0]
        rows.append([name, spread(told["us"]), *_ratios(data["columns"], PEERS), ran])
    return table(["layer", "ours, µs", *PEERS, "ran"], rows)


def models(works: Sequence[Data]) -> list[str]:
    """Accelerated models in microseconds, the other ways as multiples, and what a call runs."""
    rows = []
    for data in works:
        told = data["ways"][OURS]
        name = f"{data['model']}, batch {data['batch']}"
        runs = re.split("[,:;]", told["note"].removeprefix("runs "))[0]
        rows.append([name, spread(told["us"]), *_ratios(data["ways"], MODEL_WAYS), runs])
    return table(["model", "accelerated, µs", *MODEL_WAYS, "runs"], rows)


def _ratios(columns: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    return [ratio(columns[name]["ratio"] if name in columns else None) for name in names]


def calls(works: Sequence[Data]) -> list[str]:
    """What a call costs, what a node, what the kernel alone, and what lies between the two."""
    rows = []
    for title in dict.fromkeys(data["title"] for data in works):
        same = [data for data in works if data["title"] == title]
        called = next((d for d in same if IN_FUNCTION in d["columns"]), None)
        node = next((d for d in same if IN_FUNCTION not in d["columns"]), None)
        rows.append(
            [
                title,
                spread(microseconds(called, OURS) if called else None),
                spread(microseconds(called, IN_FUNCTION) if called else None),
                spread(microseconds(node, OURS) if node else None),
                spread(microseconds(node or same[0], KERNEL)),
                spread(node["overhead_us"] if node else None),
            ]
        )
    header = ["layer", "eager call", "tf.function call", "node", "bare kernel", "node - kernel"]
    return table(header, rows)


def growth(works: Sequence[Data]) -> list[str]:
    """Microseconds of all sides, a line a size."""
    columns = [OURS, KERNEL, *PEERS]
    rows = []
    for data in works:
        times = (microseconds(data, column) for column in columns)
        shown = [MISSING if us is None else number(us["median"]) for us in times]
        rows.append([data["title"], *shown])
    return table(["layer", *columns], rows)


def summary(works: Sequence[Data]) -> list[str]:
    """For each peer, the quartiles of its ratios over all works, and how often it is faster."""
    rows = []
    for peer in PEERS:
        ratios = sorted(
            data["columns"][peer]["ratio"]["median"] for data in works if peer in data["columns"]
        )
        if not ratios:
            rows.append([peer, "0", MISSING, MISSING, MISSING])
            continue
        low, middle, high = (ratios[int(q * (len(ratios) - 1))] for q in (0.25, 0.5, 0.75))
        faster = sum(value < 1 for value in ratios)
        figures = f"{middle:.2f} ({low:.2f}..{high:.2f})"
        rows.append([peer, str(len(ratios)), figures, f"{ratios[0]:.2f}", str(faster)])
    return table(["peer", "works", "peer / ours", "least", "faster than ours in"], rows)


def settings(works: Sequence[Data]) -> list[str]:
    """Which setting of each peer was the fastest, and how often."""
    rows = []
    for peer in PEERS:
        chosen = Counter(d["columns"][peer]["setting"] for d in works if peer in d["columns"])
        times = ", ".join(f"{name} {count}" for name, count in chosen.most_common())
        rows.append([peer, times or MISSING])
    return table(["peer", "fastest setting, number of works"], rows)


def placed(kernels: Sequence[Placed]) -> list[str]:
    """Each kernel with its rates and its share of the limit that binds it."""
    rows = [
        [
            kernel.title,
            number(kernel.seconds * 1e6),
            number(kernel.flops / kernel.seconds / 1e9),
            number(kernel.bytes / kernel.seconds / 1e9),
            kernel.limit,
            f"{kernel.share:.0%}",
            kernel.kernel,
        ]
        for kernel in kernels
    ]
    return table(["layer", "µs", "GFLOP/s", "GB/s", "limit", "of it", "schedule"], rows)
