"""What a cached kernel depends on, as one hash.

The op's program and the call (attributes, dtypes, shape class), the compiler that made the kernel
and what was chosen for it, and the machine that it was made for. Left out: anything that may change
without changing the kernel, places in sources and measured times among them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from composite.binding.kernel_request import KernelRequest

FORMAT = 1  # of records and of the ABI between kernels and the runtime
CHECK = 2  # what kernels are held to before they are used: one from the cache is not checked again


def entry_key(
    request: KernelRequest, target: str, choices: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """The key of a request for a target; 32 hex digits.

    `choices`: the values of knobs that are not the strategies' own.
    """
    content = [f"format {FORMAT}", f"check {CHECK}", *_call(request, target)]
    content += [f"{name} {version}" for name, version in toolchain()]
    content += [f"choice {name} {choices[name]}" for name in sorted(choices)]
    return _hash(content)


def tuning_key(request: KernelRequest, target: str) -> str:
    """The key of what was measured of a request's kernels; 32 hex digits.

    Our own compiler is no part of it: what is measured is named by the code that it was measured
    with, so that a change of the compiler leaves what it does not touch.
    """
    versions = [f"{name} {version}" for name, version in toolchain() if name.startswith("apache-")]
    return _hash(["tuning", *_call(request, target), *versions])


def _call(request: KernelRequest, target: str) -> list[str]:
    content = [f"target {target}", f"op {request.op}", f"program {request.program}"]
    content += [f"shapes {request.in_shapes}", f"constants {request.constants}"]
    for name in sorted(request.attrs):
        value = request.attrs[name].SerializeToString(deterministic=True)
        content.append(f"{name} {value.hex()}")
    return content


def _hash(content: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:32]


def sha256(content: bytes) -> str:
    """The hash that files are named and checked by."""
    return hashlib.sha256(content).hexdigest()


@functools.lru_cache(maxsize=1)
def toolchain() -> tuple[tuple[str, str], ...]:
    """What compiles: names and versions. Our own compiler's version is the hash of its sources."""
    versions = [("compiler", _source_hash())]
    for distribution in ("apache-tvm", "apache-tvm-ffi", "tensorflow", "tensorflow-cpu"):
        try:
            versions.append((distribution, metadata.version(distribution)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(versions)


def _source_hash() -> str:
    root = Path(str(resources.files("composite").joinpath("compiler").joinpath("tvm")))
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def machine() -> str:
    """The kind of machine that times are valid for: processor model and cores, as a hash."""
    model = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(
            (x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), model
        )
    except OSError:
        pass  # not Linux: platform's answer has to do
    cores = len(os.sched_getaffinity(0))
    return hashlib.sha256(f"{model} {cores}".encode()).hexdigest()[:12]
