"""What a report says of the machine: what decides speed, and nothing that names it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composite.compiler.tvm import Target
from composite.compiler.tvm.machine import BFLOAT16

KINDS = ("sse42", "avx2", "avx512", "amx")
"""Kinds of machines: each has a page of its own, since other kernels run there."""

_UNITS = {"x86-64-v2": "SSE4.2", "x86-64-v3": "AVX2", "x86-64-v4": "AVX-512"}
_UNITS[BFLOAT16] = _UNITS["x86-64-v4"]

_KINDS = {"SSE4.2": "sse42", "AVX2": "avx2", "AVX-512": "avx512"}


def machine() -> dict[str, Any]:
    """Processor, usable cores, vector unit, memory in GB, kernel and Python."""
    target = Target.host()
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _model(cpuinfo),
        "cores": target.cores,
        "vectors": _UNITS[target.isa],
        "kind": "amx" if " amx_tile" in cpuinfo else _KINDS[_UNITS[target.isa]],
        "memory_gb": round(pages / 2**30),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
    }


def kind_of(told: Mapping[str, Any]) -> str:
    """The kind of a machine, one of `KINDS`; of results that name none, by its vectors."""
    return str(told.get("kind") or _KINDS[told["vectors"]])


def _model(text: str) -> str:
    names = [line.partition(":")[2] for line in text.splitlines() if line.startswith("model name")]
    return names[0].strip() if names else "an unknown processor"
