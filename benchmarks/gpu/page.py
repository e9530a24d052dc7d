"""docs/gpu-performance.md: what `make gpu` found on a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.gpu.run import Outcome

_HEAD = """\
# Performance on a GPU

Written by `make gpu` ([gpu-kernels.md](gpu-kernels.md)); do not edit it. The driver launched these
kernels; nodes of TensorFlow's ran them where a row says so. Each result was compared with float64,
and what is wrong is said. A time is that of the GPU, the best of several repetitions; PyTorch's is
that of its own function or of `torch.compile`, whichever is faster.
"""


def page(
    machine: Mapping[str, str],
    limits: Mapping[str, float],
    found: Sequence[Outcome],
    tools: Mapping[str, str],
) -> str:
    """The text of the page."""
    lines = [_HEAD, "## The machine", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in machine.items()]
    if limits:
        lines += [
            f"| bytes read and written by a copy | {limits['bytes a second'] / 1e12:.2f} TB/s |",
            "| products of float16 by `mma.sync` |"
            f" {limits['operations a second'] / 1e12:.0f} TFLOP/s |",
        ]
    lines += [f"| {tool} | {verdict} |" for tool, verdict in tools.items()]
    lines += ["", "## Kernels", ""]
    lines += [
        "| work | strategy | error (bound) | us | of the limit | PyTorch us | PyTorch / ours |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [_row(one, limits) for one in found if one.strategy]
    missing = [one for one in found if not one.strategy]
    if missing:
        lines += ["", "## Without a kernel", ""]
        lines += [f"- {one.work}: {one.wrong}" for one in missing]
    return "\n".join(lines) + "\n"


def _row(one: Outcome, limits: Mapping[str, float]) -> str:
    error = f"{one.error:.1e} ({one.bound:.0e})" + (f" **{one.wrong}**" if one.wrong else "")
    taken = f"{one.seconds * 1e6:.1f}" if one.seconds else ""
    peer = f"{one.peer * 1e6:.1f}" if one.peer else ""
    ratio = f"{one.peer / one.seconds:.2f}" if one.peer and one.seconds else ""
    cells = (one.work, one.strategy, error, taken, _part(one, limits), peer, ratio)
    return f"| {' | '.join(cells)} |"


def _part(one: Outcome, limits: Mapping[str, float]) -> str:
    """How much of what the GPU can do a kernel does; by the measured limit that binds it."""
    if not limits or not one.seconds:
        return ""
    if one.flops:
        return f"{one.flops / one.seconds / limits['operations a second']:.0%} of products"
    return f"{one.bytes / one.seconds / limits['bytes a second']:.0%} of memory"
