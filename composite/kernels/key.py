"""Keys of kernels: hashes of everything that a kernel depends on, for caching, building and tuning.

A key covers the expansion, the call (op, attributes, shape class and constants), the compiler and
its choices, and the target machine. The runtime and the front end are covered by the expansion that
they produce. A key does not cover what does not change the kernel: the version of the op, places in
sources, and measured times.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from composite.binding import fields
from composite.binding.kernel_request import KernelRequest
from composite.kernels import toolchain
from composite.ops import function_digest

FORMAT = 2  # the version of the ABI between kernels and the runtime
CHECK = 8  # of the check of kernels, which cached kernels do not pass again


@dataclass(frozen=True)
class Identity:
    """What the kernels of a request depend on, apart from the compiler and the machine.

    Attributes:
        op: the op's name.
        content: lines that differ if the kernels do.
    """

    op: str
    content: tuple[str, ...]

    @classmethod
    def of(cls, request: KernelRequest, expansion: Any) -> Identity:
        """The identity of a request with this expansion (a FunctionDefLibrary)."""
        content = [f"op {request.op}", f"expansion {function_digest.digest(expansion)}"]
        content += [f"shapes {request.in_shapes}", f"constants {request.constants}"]
        content += [f"device {request.device}"] if request.device else []
        content += ["invariant"] if request.invariant else []
        content += [f"size inputs {request.size_inputs}"] if request.size_inputs else []
        for name, value in sorted(request.attrs.items()):
            content.append(f"{name} {value.SerializeToString(deterministic=True).hex()}")
        return cls(request.op, tuple(content))

    def entry_key(self, target: str, choices: Mapping[str, Any] = MappingProxyType({})) -> str:
        """The key of the kernel that this compiler makes for a target, 32 hex digits.

        `choices`: the values of knobs that differ from their defaults.
        """
        content = [f"format {FORMAT}", f"records {fields.VERSION}", f"check {CHECK}"]
        content += [f"target {target}", *self.content]
        content += [f"{name} {version}" for name, version in toolchain.toolchain()]
        content += [f"choice {name} {choices[name]}" for name in sorted(choices)]
        return _hash(content)

    def tuning_key(self, target: str) -> str:
        """The key of tuning results, 32 hex digits.

        It does not cover our own compiler: results are identified by the measured code, so they
        stay valid when a change of the compiler does not affect that code.
        """
        versions = toolchain.versions(("apache-tvm", "apache-tvm-ffi"))
        others = [f"{name} {version}" for name, version in versions.items()]
        return _hash(["tuning", f"target {target}", *self.content, *others])


def toolchain_key() -> str:
    """The key of the compiler itself, 32 hex digits."""
    return _hash([f"{name} {version}" for name, version in toolchain.toolchain()])


def _hash(content: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:32]


def sha256(content: bytes) -> str:
    """The hash by which files are named and checked."""
    return hashlib.sha256(content).hexdigest()


@functools.cache
def machine(gpu: str = "") -> str:
    """The kind of machine that times are valid for: a hash of the processor model and cores.

    `gpu`: the model of the measured GPU.
    """
    model = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(
            (x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), model
        )
    except OSError:
        pass  # not Linux: use what `platform` says
    cores = len(os.sched_getaffinity(0))
    on = f" {gpu}" if gpu else ""
    return hashlib.sha256(f"{model} {cores}{on}".encode()).hexdigest()[:12]
