"""A page of docs/performance/: the results of a run. It reads results and measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.report import tables
from benchmarks.report.machine import kind_of
from benchmarks.roofline.ceilings import Ceilings, place
from benchmarks.rows import Row
from benchmarks.works.work import CALL_SECONDS

Results = Mapping[str, Any]

_HOW = f"""\
## How it is measured

- **One at a time, in turns.** Each library runs in a process of its own. In each round, one after
  the other runs for two milliseconds while all others wait. The order changes from round to round,
  so a slow phase of the machine affects all of them. Before each turn, one run is not measured.
- **Ratios are taken within a round.** A figure such as 1.31 (1.25..1.40) is the median of these
  ratios, with the quartiles. Above 1, the peer takes longer than ours; **bold** is below 1.
- **Short layers are measured as nodes of a graph**, not only as calls. Layers are stacked until
  one call takes {CALL_SECONDS * 1e3:g} milliseconds (at most 64 layers, or 8 recurrent ones);
  the time is divided by their number. If the output of a layer differs in shape from its input,
  it alternates with a layer that maps back, and the figure is the mean of both. The layers either
  share their weights, which then stay in the cache, or have distinct weights, as in a model.
- **Weights are constants of the graph for all, or inputs of it for all.** Constants can be
  prepacked.
- **The best setting of each peer counts**, chosen for each layer; a table below shows which. All
  may use all cores. ONNX Runtime and OpenVINO run the same ONNX model, which has one ONNX operator
  for each layer, with inputs and outputs bound. PyTorch runs in inference mode. TensorFlow is the
  best of eager, `tf.function` and XLA; for recurrent layers it is the best of a loop over the ops
  of a step, Keras's layer, and BlockLSTM, none of them eager.
- **A recurrent layer returns its state after every step**, and starts from zeros. Its shape is
  batch x length x features x units. It is batch major, except in the ONNX model, which is time
  major because ONNX Runtime supports no other layout. Each library has its own order of the gates.
- **All compute the same result**, with float32 inputs and outputs. Before it is timed, each result
  is compared with NumPy in float64, and is rejected if it differs too much.
- **Ours is what a user gets**: the backend `auto`, after the kernels were compiled, in a process
  that has seen no other batch size of the layer. "A call" is an eager call, which packs weights
  that have been the same tensors for some calls. The last column says whether a kernel ran, or the
  expansion because no kernel covers the layer or the kernel was not faster.
- **Idle processes are stopped.** Between its turns, a library's process is stopped, so that
  threads that spin while they wait for work take no processor time from the others.
"""

_CALLS = """\
## What a call costs

In microseconds: an eager call; a call of a `tf.function` with one layer; a node in a stack of such
layers, which share their weights; the kernel alone, compiled for the shape and called without
TensorFlow, on TVM's thread pool, with weights packed where they are constants; and the difference
between node and kernel, paired by round. Both calls are made from Python.
"""

_ROOFLINE = """\
## Where the kernels stand

The limits of the machine are measured by kernels that do nothing else, as the best of many calls
(`benchmarks/roofline/probes.py` says what is counted). They give each kernel a least time: its
operations at the peak rate, or its inputs, weights and outputs at the bandwidth of the smallest
level of the memory hierarchy that holds them, whichever takes longer. "of it" is the least time
divided by the measured time. A transcendental function counts as one operation, so kernels with
many of them cannot reach this limit. Neither can recurrent layers with small batches: they read
their weights in every step, but these count as read once.
"""

_MODELS = """\
## Models

Models that others wrote, called through what `composite.accelerate(model, inputs, xla=True)` made
of them. The last column has what that chose for calls: regions, what XLA compiled, or the original.
TensorFlow is a `tf.function` of the model, ONNX Runtime runs what tf2onnx makes of it, and OpenVINO
reads its SavedModel. Each result is compared with TensorFlow's. "Regions alone" is the model with
regions, whether they were chosen or not.
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
    models = _models(subjects.get("models", []))
    lines += models
    told = {"peers", "growth", "roofline"} | ({"models"} if models else set())
    rest = {subject: rows for subject, rows in subjects.items() if subject not in told}
    if rest:
        lines += ["## The other subjects", "", *_others(rest)]
    return "\n".join(lines).rstrip() + "\n"


_UNITS = {"sse42": "SSE4.2", "avx2": "AVX2", "avx512": "AVX-512", "amx": "AMX"}


def _head(results: Results) -> list[str]:
    machine = results["machine"]
    nobody: dict[str, dict[str, str]] = {"versions": {}, "missing": {}}
    told = next((row["data"] for row in _sides(results)), nobody)
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    lines = [
        f"# Performance with {_UNITS[kind_of(machine)]}",
        "",
        '<!-- Written by `make bench ARGS="--page docs/performance"`; not by hand. -->',
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
    rows = (results["subjects"].get(name, []) for name in ("peers", "growth", "models"))
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


def _models(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The part on models; nothing where none was measured beside the peers."""
    works = [row["data"] for row in rows if "ways" in row["data"]]
    if not works:
        return []
    means = [
        [row["data"]["mean_of"], f"{row['value']:.2f}"] for row in rows if "mean_of" in row["data"]
    ]
    lines = [*_MODELS.splitlines(), "", *tables.models(works)]
    lines += tables.table(["geometric means", "figure"], means) if means else []
    for row in rows:
        if not row["unit"] and not row["data"]:
            lines += [f"Without {row['what']}: {row['detail']}.", ""]
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
