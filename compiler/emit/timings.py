"""timings.json of a built library: what was measured, where, for each kernel.

The file lies beside the library and is not part of its digest. The runtime reads it when the
library is loaded, without a JSON parser (composite/runtime/kernels/timings.cc), so the layout is
fixed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelTiming:
    """What was measured for a kernel. Times in microseconds, the lists are equally long."""

    asked: int  # the size that was measured best, one of `sizes`
    sizes: list[int]  # ascending: products of the values of the class's symbols
    kernel_times: list[float]
    expansion_times: list[float]
    kernel_wins: list[bool]


def timings(machine: str, kernels: Mapping[str, KernelTiming]) -> str:
    """The text for kernels by name."""
    lines = [
        f"  {json.dumps(name)}: {json.dumps(_line(kernel))}"
        for name, kernel in sorted(kernels.items())
    ]
    body = ",\n".join(lines)
    return f'{{\n "machine": {json.dumps(machine)},\n "kernels": {{\n{body}\n }}\n}}\n'


def _line(kernel: KernelTiming) -> dict[str, Any]:
    kernel_times = [round(time, 3) for time in kernel.kernel_times]
    expansion_times = [round(time, 3) for time in kernel.expansion_times]
    asked = kernel.sizes.index(kernel.asked)
    return {
        "verdict": "kernel" if any(kernel.kernel_wins) else "expansion",
        "kernel_us": kernel_times[asked],
        "expansion_us": expansion_times[asked],
        "asked": kernel.asked,
        "sizes": kernel.sizes,
        "kernel_times": kernel_times,
        "expansion_times": expansion_times,
        "kernel_wins": kernel.kernel_wins,
    }


def read(text: str, machine: str) -> dict[str, KernelTiming]:
    """The kernels of a text by name; none when it is of another machine or layout."""
    try:
        content = json.loads(text)
        kernels = {name: _kernel(line) for name, line in content["kernels"].items()}
        return kernels if content["machine"] == machine else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _kernel(line: Mapping[str, Any]) -> KernelTiming:
    kernel = KernelTiming(
        asked=int(line["asked"]),
        sizes=[int(size) for size in line["sizes"]],
        kernel_times=[float(time) for time in line["kernel_times"]],
        expansion_times=[float(time) for time in line["expansion_times"]],
        kernel_wins=[win is True for win in line["kernel_wins"]],
    )
    columns = (kernel.kernel_times, kernel.expansion_times, kernel.kernel_wins)
    if any(len(column) != len(kernel.sizes) for column in columns):
        raise ValueError("the lists of a kernel are not equally long")
    return kernel
