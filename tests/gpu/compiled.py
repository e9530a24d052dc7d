"""What is compiled once for each state of its sources: libraries, and headers of the stand-in.

Most of what the sources of kernels take to compile are the headers that they are compiled over.
g++ parses these once, and leaves what it then reads each time.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

HERE = Path(__file__).parent
SHIM, NVRTC = HERE / "shim", HERE / "nvrtc"
FLAGS = ("-std=c++17", "-O1", "-w", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing")

_HEADERS = sorted([*SHIM.glob("*.h"), *NVRTC.glob("*.h")])


def compiled(name: str, suffix: str, sources: Sequence[Path], command: Sequence[Any]) -> Path:
    """What a command makes. Several processes may make it at once."""
    state = hashlib.sha256(f"{command} {tf.__version__}".encode())
    for source in sources:
        state.update(source.read_bytes())
    made = HERE.parents[1] / "build" / "gpu" / f"{name}_{state.hexdigest()[:16]}{suffix}"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        mine = made.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, "-o", mine], check=True)
        mine.rename(made)
    return made


@functools.cache
def over_headers() -> tuple[str, ...]:
    """The flags with which g++ compiles kernels over threads.h or module.h."""
    folders = (f"-I{SHIM}", f"-I{NVRTC}")
    command = ["g++", *FLAGS, *folders, "-x", "c++-header", NVRTC / "module.h"]
    compiler = Path(shutil.which("g++") or "g++")  # only the same one reads what it left
    parsed = compiled("module", ".h.gch", [*_HEADERS, compiler], command)
    return (*FLAGS, *folders, "-include", str(parsed.with_suffix("")))
