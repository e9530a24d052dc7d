"""What a report says of the machine: what decides speed, and nothing that names it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from composite.compiler.tvm import Target

_UNITS = {"x86-64-v2": "SSE4.2", "x86-64-v3": "AVX2", "x86-64-v4": "AVX-512"}


def machine() -> dict[str, Any]:
    """Processor, usable cores, vector unit, memory in GB, kernel and Python."""
    target = Target.host()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _model(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        "cores": target.cores,
        "vectors": _UNITS[target.isa],
        "memory_gb": round(pages / 2**30),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
    }


def _model(text: str) -> str:
    names = [line.partition(":")[2] for line in text.splitlines() if line.startswith("model name")]
    return names[0].strip() if names else "an unknown processor"
