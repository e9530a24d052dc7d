"""What a library is built with: its name, the calls that have kernels, the targets; as plain data.

A call is a mapping of names to values: an input is a pair (dtype, dims), in which a dim is a size,
or a name where it varies; an attribute is what a caller gives. Files hold calls as JSON.

This module imports neither TensorFlow nor TVM: whether a library is current is asked before.

Not for: the calls beside the ops (signatures.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from composite.aot.inputs import MANIFEST
from composite.binding import json_text
from composite.compiler.tvm.target import CudaTarget, Target

_CUDA = "cuda:sm_"

Call = Mapping[str, Any]
Signatures = Mapping[str, Sequence[Call]]


class Options(NamedTuple):
    """What a library is built with.

    Attributes:
        name: of the library, an identifier; by default the source file's.
        signatures: for an op's name, in Python or TensorFlow, the calls to compile kernels for.
        targets: levels of the x86-64 psABI, "x86-64-v3", of GPUs, "cuda:sm_90", "aarch64", and
            "cpu", which is this machine's level; by default that alone.
        kinds: for each op without stated calls, how many kinds of calls at most have a kernel.
        of_a_run: whether the signatures may hold calls of other ops, which are left out.
        elsewhere: digests of ops whose kernels another library has: here they have none.
        registration: whether the C source that the library is linked from goes along.
        tuned: a tuning database, which kernels are made by; None makes them as they are by default.
        numerics: "fast", or "invariant" for kernels of calls with that option alone.
    """

    name: str | None = None
    signatures: Signatures = MappingProxyType({})
    targets: tuple[str, ...] = ()
    kinds: int = 0
    of_a_run: bool = False
    elsewhere: tuple[str, ...] = ()
    registration: bool = False
    tuned: Path | None = None
    numerics: str = "fast"

    def plain(self, source: Path) -> dict[str, Any]:
        """As JSON can hold it, for the manifest of a library that is built from a file."""
        return {
            "name": self.name or source.stem,
            "signatures": {op: [text(c) for c in cs] for op, cs in self.signatures.items()},
            "targets": [one.target.key for one in build_targets(self.targets, self.numerics)],
            "kinds": self.kinds,
            "elsewhere": list(self.elsewhere),
            "registration": self.registration,
            "tuned": None if self.tuned is None else sha256(self.tuned.read_bytes()).hexdigest(),
        }


class BuildTarget(NamedTuple):
    """What kernels are built for, and the device that requests for them name.

    Attributes:
        target: what they are compiled for.
        device: a level of GPUs as requests name it, "cuda:sm_90", or "cuda:compute_90" for that one
            and all later ones; "" is the CPU.
    """

    target: Target
    device: str = ""


def build_targets(levels: Sequence[str], numerics: str = "fast") -> list[BuildTarget]:
    """What a library is built for, the lowest CPU first; without levels this machine's CPU.

    A GPU's products of float32 are not rounded to TF32: the library serves processes that forbid
    that, too. ValueError for a level that there is not, or that this machine's CPU has not: its
    kernels are checked and measured where they are built. ValueError for a GPU where kernels are to
    be invariant.
    """
    invariant = numerics == "invariant"
    devices = sorted({level for level in levels if level.startswith(_CUDA)})
    others = [level for level in levels if level not in devices]
    if devices and invariant:
        raise ValueError(f"numerics='invariant' has kernels for CPUs alone, not for {devices[0]}")
    cpus = _cpus(others) if others or not devices else []
    cpus = [replace(target, invariant=invariant) for target in cpus]
    gpus = [BuildTarget(_gpu(device), device) for device in devices]
    # When the library is loaded the last one that the CPU can run comes first.
    return [*map(BuildTarget, cpus), *gpus, *_later(gpus)]


def _cpus(levels: Sequence[str]) -> list[Target]:
    host = Target.host()
    chosen = {host.isa: host} if not levels or "cpu" in levels else {}
    chosen |= {level: Target.of(level, host.cores) for level in levels if level != "cpu"}
    for target in chosen.values():
        if target.isa > host.isa and not target.is_foreign:
            raise ValueError(
                f"kernels for {target.isa} cannot be checked on this machine, which has "
                f"{host.isa}: build them on one that has it"
            )
    return [chosen[level] for level in sorted(chosen)]


def _later(gpus: Sequence[BuildTarget]) -> list[BuildTarget]:
    """The lowest level of GPUs as PTX, for all later ones."""
    targets = [gpu.target for gpu in gpus if isinstance(gpu.target, CudaTarget)]
    if not targets:
        return []
    lowest = min(targets, key=lambda target: int(target.isa.removeprefix("sm_")))
    device = f"cuda:compute_{lowest.isa.removeprefix('sm_')}"
    return [BuildTarget(replace(lowest, is_portable=True), device)]


def _gpu(device: str) -> CudaTarget:
    level = device.removeprefix(_CUDA)
    if not level.isdigit():
        raise ValueError(
            f"{device!r} is no level of GPUs: write the compute capability without its point, as "
            f"{_CUDA}90"
        )
    return CudaTarget.of_device(device)


def elsewhere(folders: Iterable[Path]) -> tuple[str, ...]:
    """The digests of the ops of built libraries. FileNotFoundError for a folder that is none."""
    digests: set[str] = set()
    for folder in folders:
        path = folder / MANIFEST
        if not path.is_file():
            raise FileNotFoundError(f"{folder} is no library of composite.build: no {path.name}")
        try:
            digests.update(op["digest"] for op in json_text.parsed(path.read_text("utf-8"))["ops"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({error}): build the library again") from error
    return tuple(sorted(digests))


def text(arguments: Call) -> str:
    """A call as one line of JSON, the same for the same call."""
    return json.dumps(dict(arguments), sort_keys=True, default=plain)


def plain(value: Any) -> Any:
    """What JSON does not know, in the terms of a signature file."""
    if isinstance(value, bytes):
        return value.decode()
    kind = type(value).__name__  # TensorFlow's classes, which this module does not import
    if kind == "TensorSpec":
        return [value.dtype.name, plain(value.shape)]
    if kind == "DType":
        return value.name
    if kind == "TensorShape":
        return value.as_list() if value.rank is not None else None
    return repr(value)


def read(path: Path) -> Signatures:
    """The calls of a file: a JSON object of lists by op, or what COMPOSITE_RECORD wrote.

    OSError when it cannot be read; ValueError, with the line, when it is neither.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: {error}") from error
    try:
        parsed = json_text.parsed(content)
    except ValueError:
        return _recorded(path, content)
    if isinstance(parsed, dict) and {"op", "call"} == set(parsed):
        return _recorded(path, content)  # of one call
    if not isinstance(parsed, dict) or not all(_are_calls(calls) for calls in parsed.values()):
        raise ValueError(f"{path}: a JSON object is wanted, with a list of calls for each op")
    return parsed


def _are_calls(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(call, dict) for call in value)


def _recorded(path: Path, content: str) -> Signatures:
    calls: dict[str, list[Call]] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json_text.parsed(line)
            calls.setdefault(entry["op"], []).append(dict(entry["call"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}:{number}: neither a JSON object of calls nor a line that "
                f"COMPOSITE_RECORD wrote ({error})"
            ) from error
    return calls
