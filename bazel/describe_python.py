"""Describes an interpreter for the repository rule in python.bzl: JSON on standard output.

Runs in the interpreter that it describes, and imports nothing that is installed there. What it
tells under "environment" is all that the bytes of a library depend on besides its sources.

Not for: whether the packages work, which the first build finds out.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

_DISTRIBUTIONS = (
    "apache-tvm",
    "apache-tvm-ffi",
    "gast",
    "numpy",
    "tensorflow",
    "tensorflow-cpu",
    "tf-composite",
    "torch-mlir",
)


def described(compiler: str, *, with_package: bool) -> dict[str, Any]:
    """What python.bzl writes its BUILD file from; "missing" names packages that are not there."""
    folders = {name: _folder(name) for name in ("tensorflow", "composite")}
    environment = {
        "compiler": _first_line([compiler, "--version"]),
        "machine": _machine(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _DISTRIBUTIONS},
    }
    if with_package and folders["composite"]:
        environment["composite"] = _digest(Path(folders["composite"]))
    return {**folders, "environment": environment, "version": _version("tf-composite")}


def _folder(package: str) -> str:
    found = util.find_spec(package)
    places = list(found.submodule_search_locations or []) if found else []
    return places[0] if places else ""


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


def _machine() -> str:
    """The processor: kernels are made for its level and its cores, and are measured on it."""
    facts: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "flags"):
            facts.setdefault(name.strip(), value.strip())
    flags = hashlib.sha256(facts.get("flags", "").encode()).hexdigest()[:16]
    return f"{facts.get('model name', platform.machine())}, {os.cpu_count()} cores, flags {flags}"


def _digest(package: Path) -> str:
    """The hash of an installed package, which may be an editable one."""
    digest = hashlib.sha256()
    for folder, _, files in sorted(os.walk(package, followlinks=True)):
        for file in sorted(files):
            if file.endswith((".py", ".mlir", ".so")):
                path = Path(folder, file)
                digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    print(json.dumps(described(sys.argv[1], with_package="--package" in sys.argv), sort_keys=True))
