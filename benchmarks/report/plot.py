"""`python -m benchmarks.report.plot RESULTS.json OUT.svg`: ratios to the peers, and the roofline.

Runs in the environment of the peers, which has matplotlib. The same results give the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib import ticker

from benchmarks.report.tables import KERNEL, PEERS
from benchmarks.roofline.ceilings import Ceilings, place

_COLOURS = dict(zip(PEERS, ("#e69f00", "#0072b2", "#009e73", "#cc79a7"), strict=True))


def plot(results: Mapping[str, Any], path: Path) -> None:
    """Write the picture: bars for the last form of each layer, and the roofline where measured."""
    mpl.rcParams.update({"svg.hashsalt": "composite", "svg.fonttype": "none", "font.size": 8})
    rows = results["subjects"].get("peers", [])
    works = {row["data"]["title"]: row["data"] for row in rows if "columns" in row["data"]}
    ceilings = Ceilings.of(results["subjects"].get("roofline", []))
    height = max(5.0, 0.36 * len(works) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, height), layout="constrained")
    _bars(left, list(works.values()))
    if ceilings is None:
        right.set_axis_off()
    else:
        _roofline(right, ceilings, rows)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _bars(axes: Any, works: Sequence[Mapping[str, Any]]) -> None:
    width = 0.8 / len(PEERS)
    for number, peer in enumerate(PEERS):
        shown = [
            (i, w["columns"][peer]["ratio"]) for i, w in enumerate(works) if peer in w["columns"]
        ]
        medians = [ratio["median"] for _, ratio in shown]
        spread = [
            [ratio["median"] - ratio["low"] for _, ratio in shown],
            [ratio["high"] - ratio["median"] for _, ratio in shown],
        ]
        places = [i + (number - (len(PEERS) - 1) / 2) * width for i, _ in shown]
        lengths = [median - 1 for median in medians]
        axes.barh(places, lengths, width, left=1, color=_COLOURS[peer], label=peer)
        axes.errorbar(medians, places, xerr=spread, fmt="none", ecolor="#444", elinewidth=0.6)
    axes.set_yticks(range(len(works)), [f"{w['title']}\n{w['form']}" for w in works], fontsize=6)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time of the peer / time of ours (right of 1: ours is faster)")
    axes.xaxis.set_major_locator(ticker.LogLocator(base=2))
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(PEERS))


def _roofline(axes: Any, ceilings: Ceilings, rows: Sequence[Mapping[str, Any]]) -> None:
    kernels = place(ceilings, rows, KERNEL)
    intensities = [kernel.flops / kernel.bytes for kernel in kernels] or [1.0]
    low, high = min(intensities) / 3, max(intensities) * 3
    for level in ceilings.levels:
        ridge = ceilings.flops / level.bandwidth
        ends = [low, min(max(ridge, low), high)]
        heights = [min(x * level.bandwidth, ceilings.flops) / 1e9 for x in ends]
        axes.plot(ends, heights, color="#888", linewidth=0.9)
        axes.annotate(
            f"{level.name} {level.bandwidth / 1e9:.0f} GB/s", (ends[0], heights[0]), fontsize=6
        )
    peak = ceilings.flops / 1e9
    axes.axhline(peak, color="black", linewidth=0.9)
    axes.annotate(f"FMA {peak:.0f} GFLOP/s", (low, peak), fontsize=6, va="bottom")
    for kernel, intensity in zip(kernels, intensities, strict=False):
        rate = kernel.flops / kernel.seconds / 1e9
        axes.plot(intensity, rate, "o", markersize=3, color="#0072b2")
        axes.annotate(
            f" {kernel.title} {kernel.share:.0%}", (intensity, rate), fontsize=5, va="center"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("operations for each byte that must be moved")
    axes.set_ylabel("GFLOP/s of our kernels; share of the limit that binds each")


if __name__ == "__main__":
    plot(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
