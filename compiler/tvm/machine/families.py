"""Known families of processors.

Sources: Agner Fog, "The microarchitecture of Intel, AMD and VIA CPUs" and "Instruction tables"
(latencies and throughputs of vector multiply-adds, loads a cycle); uops.info; AMD's software
optimization guides for families 17h, 19h and 1Ah and Intel's "64 and IA-32 Architectures
Optimization Reference Manual" (caches and their bandwidths). A core's bandwidth of memory is of a
core alone, about 12 GB/s to 16 GB/s at 3 GHz on servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from composite.compiler.tvm.machine.machine import Cache, Machine

_KIB, _MIB = 1 << 10, 1 << 20


class _Family(NamedTuple):
    """Models of a vendor's family, of the numbers that the CPUID instruction gives."""

    vendor: str
    family: int
    models: Iterable[int]
    machine: Machine


def _zen(  # noqa: PLR0913, PLR0917 - the columns of a table
    name: str,
    lanes: int,
    l1: int,
    l2: int,
    l3: int,
    cores: int,
    multiply_adds: float,
    latency: float,
) -> Machine:
    return Machine(
        name,
        lanes,
        registers=32 if lanes == 16 else 16,
        l1=Cache(l1 * _KIB, 1, 64.0 if lanes == 8 else 64.0 * multiply_adds),
        l2=Cache(l2 * _KIB, 1, 32.0 if multiply_adds < 2 or lanes == 8 else 64.0),
        l3=Cache(l3 * _MIB, cores, 16.0),
        multiply_adds=multiply_adds,
        loads=multiply_adds,
        latency=latency,
    )


def _intel(  # noqa: PLR0913, PLR0917 - the columns of a table
    name: str, lanes: int, l1: int, l2: int, l3: int, cores: int, latency: float
) -> Machine:
    return Machine(
        name,
        lanes,
        registers=32 if lanes == 16 else 16,
        l1=Cache(l1 * _KIB, 1, 64.0 if lanes == 8 else 128.0),
        l2=Cache(l2 * _KIB, 1, 32.0 if lanes == 8 else 48.0),
        l3=Cache(l3 * _MIB, cores, 10.0),
        latency=latency,
    )


_AMD, _INTEL = "AuthenticAMD", "GenuineIntel"

# Of servers, where a family has desktops, too: they have as much L3 cache for a core, or more.
_FAMILIES = (
    _Family(_AMD, 0x17, range(0x30, 0x100), _zen("zen2", 8, 32, 512, 16, 4, 2.0, 5.0)),
    _Family(_AMD, 0x19, range(0x10), _zen("zen3", 8, 32, 512, 32, 8, 2.0, 4.0)),
    _Family(_AMD, 0x19, range(0x20, 0x60), _zen("zen3", 8, 32, 512, 32, 8, 2.0, 4.0)),
    _Family(_AMD, 0x19, range(0x10, 0x20), _zen("zen4", 16, 32, 1024, 32, 8, 1.0, 4.0)),
    _Family(_AMD, 0x19, range(0x60, 0x100), _zen("zen4", 16, 32, 1024, 32, 8, 1.0, 4.0)),
    _Family(_AMD, 0x1A, range(0x100), _zen("zen5", 16, 48, 1024, 32, 8, 2.0, 4.0)),
    _Family(_INTEL, 6, (0x3F, 0x3C), _intel("haswell", 8, 32, 256, 30, 12, 5.0)),
    _Family(_INTEL, 6, (0x4F, 0x56), _intel("broadwell", 8, 32, 256, 55, 22, 5.0)),
    _Family(_INTEL, 6, (0x55,), _intel("skylake-avx512", 16, 32, 1024, 38, 28, 4.0)),
    _Family(_INTEL, 6, (0x6A, 0x6C), _intel("icelake-server", 16, 48, 1280, 60, 40, 4.0)),
    _Family(_INTEL, 6, (0x8F,), _intel("sapphirerapids", 16, 48, 2048, 105, 56, 4.0)),
    _Family(_INTEL, 6, (0xCF,), _intel("emeraldrapids", 16, 48, 2048, 320, 64, 4.0)),
    _Family(_INTEL, 6, (0xAD, 0xAE), _intel("graniterapids", 16, 48, 2048, 480, 120, 4.0)),
)

FAMILIES: Mapping[str, Machine] = {one.machine.name: one.machine for one in _FAMILIES}
"""The machines by their names, which are LLVM's names but for Zen's ("znver4" is "zen4")."""


def family_of(vendor: str, family: int, model: int) -> Machine | None:
    """Return the machine of a processor, by what CPUID says of it; None if it is unknown."""
    for one in _FAMILIES:
        if (one.vendor, one.family) == (vendor, family) and model in one.models:
            return one.machine
    return None
