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


def _machine(  # noqa: PLR0913, PLR0917 - the columns of a table
    name: str,
    lanes: int,
    sizes: tuple[int, int, int],
    cores: int,
    bandwidths: tuple[float, float, float],
    multiply_adds: float,
    latency: float,
) -> Machine:
    """Return a machine: sizes of L1 and L2 in KiB, of L3 in MiB, and how many cores share L3."""
    l1, l2, l3 = sizes
    return Machine(
        name,
        lanes,
        registers=32 if lanes == 16 else 16,
        l1=Cache(l1 * _KIB, 1, float(bandwidths[0])),
        l2=Cache(l2 * _KIB, 1, float(bandwidths[1])),
        l3=Cache(l3 * _MIB, cores, float(bandwidths[2])),
        multiply_adds=multiply_adds,
        loads=multiply_adds,
        latency=latency,
    )


_ZEN2 = _machine("zen2", 8, (32, 512, 16), 4, (64, 32, 16), 2.0, 5.0)
_ZEN3 = _machine("zen3", 8, (32, 512, 32), 8, (64, 32, 16), 2.0, 4.0)
_ZEN4 = _machine("zen4", 16, (32, 1024, 32), 8, (64, 32, 16), 1.0, 4.0)
_ZEN5 = _machine("zen5", 16, (48, 1024, 32), 8, (128, 64, 16), 2.0, 4.0)
_HASWELL = _machine("haswell", 8, (32, 256, 30), 12, (64, 32, 10), 2.0, 5.0)
_BROADWELL = _machine("broadwell", 8, (32, 256, 55), 22, (64, 32, 10), 2.0, 5.0)
_SKYLAKE = _machine("skylake-avx512", 16, (32, 1024, 38), 28, (128, 48, 10), 2.0, 4.0)
_ICE_LAKE = _machine("icelake-server", 16, (48, 1280, 60), 40, (128, 48, 10), 2.0, 4.0)
_SAPPHIRE = _machine("sapphirerapids", 16, (48, 2048, 105), 56, (128, 48, 10), 2.0, 4.0)
_EMERALD = _machine("emeraldrapids", 16, (48, 2048, 320), 64, (128, 48, 10), 2.0, 4.0)
_GRANITE = _machine("graniterapids", 16, (48, 2048, 480), 120, (128, 48, 10), 2.0, 4.0)

_AMD, _INTEL = "AuthenticAMD", "GenuineIntel"

# Of servers, where a family has desktops, too: they have as much L3 cache for a core, or more.
_FAMILIES = (
    _Family(_AMD, 0x17, range(0x30, 0x100), _ZEN2),
    _Family(_AMD, 0x19, (*range(0x10), *range(0x20, 0x60)), _ZEN3),
    _Family(_AMD, 0x19, (*range(0x10, 0x20), *range(0x60, 0x100)), _ZEN4),
    _Family(_AMD, 0x1A, range(0x100), _ZEN5),
    _Family(_INTEL, 6, (0x3F, 0x3C), _HASWELL),
    _Family(_INTEL, 6, (0x4F, 0x56), _BROADWELL),
    _Family(_INTEL, 6, (0x55,), _SKYLAKE),
    _Family(_INTEL, 6, (0x6A, 0x6C), _ICE_LAKE),
    _Family(_INTEL, 6, (0x8F,), _SAPPHIRE),
    _Family(_INTEL, 6, (0xCF,), _EMERALD),
    _Family(_INTEL, 6, (0xAD, 0xAE), _GRANITE),
)

FAMILIES: Mapping[str, Machine] = {one.machine.name: one.machine for one in _FAMILIES}
"""The machines by their names, which are LLVM's names but for Zen's ("znver4" is "zen4")."""


def family_of(vendor: str, family: int, model: int) -> Machine | None:
    """Return the machine of a processor, by what CPUID says of it; None if it is unknown."""
    for one in _FAMILIES:
        if (one.vendor, one.family) == (vendor, family) and model in one.models:
            return one.machine
    return None
