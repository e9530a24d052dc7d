"""docs/performance.md: the results of a run as a page. It reads results and measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.report import tables
from benchmarks.roofline.ceilings import Ceilings, place
from benchmarks.rows import Row
from benchmarks.works.work import CALL_SECONDS

Results = Mapping[str, Any]

_HOW = f"""\
## How it is measured

- **One at a time, in turns.** Each side runs in a process of its own. Round by round, one side
  after the other is asked for a chunk of two milliseconds while all others wait, in another order
  each round, so that a slow spell of the machine hits all of them. Before each chunk a side runs
  once unmeasured.
- **Ratios are taken within a round.** A figure such as 1.31 (1.25..1.40) is the median of those
  ratios, with their quartiles. Above 1, the peer takes longer than ours; **bold** is below 1.
- **A node, not a call, where calls are short.** Layers are stacked until one call takes
  {CALL_SECONDS * 1e3:g} milliseconds (or 64 layers, 8 if they are recurrent), and the time is
  divided by their number. A layer with another output than input alternates with the one that leads
  back, and the figure is their mean. Weights are the same for all layers, and stay in the cache; or
  distinct, as in a model.
- **Weights are constants of the graph for all sides, or inputs of it for all.** As constants they
  can be prepacked.
- **The best of a peer's settings counts**, chosen for each work; below is which. All sides may use
  all cores. ONNX Runtime and OpenVINO run one ONNX model, each layer the one operator that ONNX has
  for it, with inputs and outputs bound; PyTorch runs in inference mode; TensorFlow is the best of
  eager, `tf.function` and XLA; of a recurrent layer not eager, but the ops of a step in a loop,
  Keras's layer, and BlockLSTM.
- **A recurrent layer hands out its state after every step**, from a state of zeros: batch x length
  x features x units, batch major; time major in the ONNX model, which ONNX Runtime has no other
  layout for. Each has its weights in its own order of the gates.
- **All compute the same**, float32 in and out: each side's result is compared with NumPy in
  float64 before it is timed, and is refused if it is off.
- **Ours is what a user gets**: `auto`, once the kernels are compiled, in a process that has seen no
  other batch of the layer. "A call" is an eager one, which knows no constants. The last column says
  whether the kernel ran, or the expansion because no kernel covers the layer or it was not faster.
- **Who is not asked stands still.** Between its turns a side's process is stopped, so that threads
  which spin while they wait for work take no processor from the others.
"""

_CALLS = """\
## What a call costs

Microseconds. An eager call, and a call of one layer as a traced function, both from Python; a
node in a stack of such layers, the same weights throughout; its kernel alone, compiled for the
shape and called without TensorFlow, on the threads of TVM's pool, weights packed where they are
constants; and, paired by round, what a node costs above its kernel.
"""

_ROOFLINE = """\
## Where the kernels stand

The limits of the machine, by kernels that do nothing else (`benchmarks/roofline/probes.py` says
what is counted), the best of many calls. Each kernel then has a least time: its operations at the
peak, or its input, weights and output at the bandwidth of the smallest level that holds them,
whichever is longer. "of it" is that time over the measured one. A transcendental function counts as
one operation, so that kernels full of them look far from a limit that they cannot reach; and so do
recurrent layers of small batches, which read their weights at every step but are counted as reading
them once.
"""


def render(results: Results, picture: str | None = None) -> str:
    """The page; `picture` is the path of the plot, relative to it."""
    subjects: Mapping[str, Sequence[Mapping[str, Any]]] = results["subjects"]
    works = _works(subjects.get("peers", []))
    grown = _works(subjects.get("growth", []))
    lines = _head(results)
    if works:
        lines += ["## Ours and the peers", "", *tables.summary(works)]
        if picture is not None:
            lines += [f"![Ratios, and the kernels on the roofline]({picture})", ""]
        lines += [*_HOW.splitlines(), "", *_by_kind(works)]
        lines += ["### Settings", "", *tables.settings(works)]
        lines += [*_CALLS.splitlines(), "", *tables.calls(works)]
    lines += _roofline(subjects)
    if grown:
        lines += ["## Growth", "", "Microseconds of a node.", ""]
        for name in dict.fromkeys(data["growth"] for data in grown):
            same = [data for data in grown if data["growth"] == name]
            lines += [f"### {_title(name)}", "", *tables.growth(same)]
    rest = {s: rows for s, rows in subjects.items() if s not in ("peers", "growth", "roofline")}
    if rest:
        lines += ["## The other subjects", "", *_others(rest)]
    return "\n".join(lines).rstrip() + "\n"


def _head(results: Results) -> list[str]:
    machine = results["machine"]
    nobody: dict[str, dict[str, str]] = {"versions": {}, "missing": {}}
    told = next((row["data"] for row in _sides(results)), nobody)
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    lines = [
        "# Performance",
        "",
        '<!-- Written by `make bench ARGS="--markdown docs/performance.md"`; not by hand. -->',
        "",
        f"Measured on {results['date']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['vectors']}, {machine['memory_gb']} GB, {machine['system']}, "
        f"Python {machine['python']}.",
        "",
    ]
    if versions:
        lines += [f"Versions: {versions}.", ""]
    for module, reason in told["missing"].items():
        lines += [f"Without {module}: {reason}.", ""]
    if results["quick"]:
        lines += ["**A quick run: few works, few rounds, wide spreads.**", ""]
    if results.get("kinds"):
        lines += [f"**Only of these kinds of layers: {', '.join(results['kinds'])}.**", ""]
    return lines


def _sides(results: Results) -> list[Mapping[str, Any]]:
    rows = (results["subjects"].get(name, []) for name in ("peers", "growth"))
    return [row for some in rows for row in some if "versions" in row["data"]]


def _works(rows: Sequence[Mapping[str, Any]]) -> list[tables.Data]:
    return [row["data"] for row in rows if "columns" in row["data"]]


def _by_kind(works: Sequence[tables.Data]) -> list[str]:
    lines: list[str] = []
    for kind in dict.fromkeys(data["work"]["kind"] for data in works):
        same = [data for data in works if data["work"]["kind"] == kind]
        lines += [f"### {_title(kind)}", "", *tables.comparison(same)]
    return lines


def _roofline(subjects: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    rows = subjects.get("roofline", [])
    if not rows:
        return []
    limits = [[r["what"], f"{tables.number(r['value'])} {r['unit']}"] for r in rows]
    lines = [*_ROOFLINE.splitlines(), "", *tables.table(["limit", "measured"], limits)]
    ceilings = Ceilings.of(rows)
    if ceilings is not None:
        kernels = place(ceilings, subjects.get("peers", []), tables.KERNEL)
        lines += tables.placed(kernels) if kernels else []
    return lines


def _others(subjects: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    shown = []
    for rows in subjects.values():
        for fields in rows:
            row = Row(**fields)
            quartiles = tables.MISSING
            if row.low is not None and row.high is not None:
                quartiles = f"{tables.number(row.low)}..{tables.number(row.high)}"
            shown.append([row.what, f"{tables.number(row.value)} {row.unit}".strip(), quartiles])
    return tables.table(["", "figure", "quartiles"], shown)


def _title(name: str) -> str:
    return name[0].upper() + name[1:]
