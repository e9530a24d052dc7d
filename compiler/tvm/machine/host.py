"""The machine that this process runs on, as Linux describes it; machines by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from composite.compiler.tvm.machine.families import FAMILIES, family_of
from composite.compiler.tvm.machine.levels import BFLOAT16, machine_of
from composite.compiler.tvm.machine.machine import Machine

# Flags of /proc/cpuinfo that each level adds to the one before. Their names sort as they do.
_FLAGS = (
    ("x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"),
    ("x86-64-v3", "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"),
    ("x86-64-v4", "avx512bw avx512cd avx512dq avx512f avx512vl"),
    (BFLOAT16, "avx512_bf16 avx512_vnni"),
)
HIGHEST = _FLAGS[-1][0]
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def host_level() -> str:
    """Return the highest level of instructions that this machine has.

    Raises:
        RuntimeError: If it has less than the lowest that kernels are made for.
    """
    flags = set(_described().get("flags", "").split())
    found = [level for i, (level, _) in enumerate(_FLAGS) if _has(flags, i)]
    if not found:
        raise RuntimeError("kernels need an x86-64 CPU with at least SSE4.2 (x86-64-v2)")
    return found[-1]


def host_machine(level: str) -> Machine:
    """Return this machine, as code of a level uses it.

    Of a processor of no known family the caches are those that Linux shows.
    """
    return machine_of(level, _known() or _with_caches(machine_of(level)))


def machine_named(name: str, level: str) -> Machine:
    """Return a machine, as code of a level uses it.

    Args:
        name: "level": any processor of the level. "host": this one. Or a family, such as "zen4".
        level: Of instructions.

    Raises:
        ValueError: If there is no such family, or no such level.
    """
    if name == "level":
        return machine_of(level)
    if name == "host":
        return host_machine(level)
    if name not in FAMILIES:
        names = ", ".join(["level", "host", *FAMILIES])
        raise ValueError(f"{name!r} is no processor that schedules know: {names}")
    return machine_of(level, FAMILIES[name])


@cache
def _described() -> Mapping[str, str]:
    """Return what /proc/cpuinfo says of the first processor."""
    facts: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if not line.strip():
            break
        name, _, value = line.partition(":")
        facts[name.strip()] = value.strip()
    return facts


@cache
def _known() -> Machine | None:
    facts = _described()
    try:
        family, model = int(facts["cpu family"]), int(facts["model"])
    except (KeyError, ValueError):
        return None
    return family_of(facts.get("vendor_id", ""), family, model)


def _with_caches(machine: Machine) -> Machine:
    found = caches(_CACHES)
    own = {
        name: replace(getattr(machine, name), size=size, cores=cores)
        for name, (size, cores) in found.items()
    }
    sizes = "-".join(str(size >> 10) for size, _ in found.values())
    return replace(machine, name=f"{machine.name}-{sizes}", **own) if own else machine


def caches(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the cores of each level of data cache, of those that Linux shows.

    ``folder`` has an ``index*`` for each, see Linux's Documentation/ABI/stable/sysfs-devices-cpu.
    A virtual machine may show none, or not all.
    """
    found: dict[str, tuple[int, int]] = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind, level = (_read(index / name) for name in ("type", "level"))
            size, shared = (_read(index / name) for name in ("size", "shared_cpu_list"))
        except OSError:
            continue
        if kind in {"Data", "Unified"} and level in {"1", "2", "3"} and size.endswith("K"):
            found[f"l{level}"] = int(size[:-1]) << 10, _count(shared)
    return found


def _read(path: Path) -> str:
    return path.read_text().strip()


def _count(ranges: str) -> int:
    """Return how many numbers there are in a list such as "0-3,8"."""
    ends = [part.partition("-") for part in ranges.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _has(flags: set[str], level: int) -> bool:
    return all(flags >= set(needed.split()) for _, needed in _FLAGS[: level + 1])
