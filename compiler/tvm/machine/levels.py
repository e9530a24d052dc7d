"""What schedules assume of a processor of which the level of instructions alone is known.

A library that is built for a level is the same wherever it is built, and runs on all its
processors: their smallest caches are assumed.
"""

from __future__ import annotations

from dataclasses import replace

from composite.compiler.tvm.machine.machine import Cache, Machine

BFLOAT16 = "x86-64-v4-bf16"
"""The level of CPUs that multiply bfloat16 and 8-bit integers: x86-64-v4 with AVX512_BF16, VNNI."""

AARCH64 = "aarch64"
"""The level of 64-bit ARM CPUs, all of which have NEON: vectors of 128 bits, fused products."""

_L1 = Cache(size=32 << 10, cores=1, bandwidth=64.0)
_L2 = Cache(size=512 << 10, cores=1, bandwidth=32.0)
_L3 = Cache(size=16 << 20, cores=4, bandwidth=32.0)


def _level(name: str, lanes: int, registers: int) -> Machine:
    return Machine(name, lanes, registers, _L1, _L2, _L3)


LEVELS = {
    one.name: one
    for one in (
        _level("x86-64-v2", lanes=4, registers=16),
        _level("x86-64-v3", lanes=8, registers=16),
        _level("x86-64-v4", lanes=16, registers=32),
        _level(BFLOAT16, lanes=16, registers=32),
        _level(AARCH64, lanes=4, registers=32),
    )
}


def machine_of(level: str, known: Machine | None = None) -> Machine:
    """Return the machine for a level: its default, or a known one that runs the level's code.

    Raises:
        ValueError: For a level that kernels are not made for.
    """
    if level not in LEVELS:
        raise ValueError(f"{level!r} is no level that kernels are made for: {', '.join(LEVELS)}")
    default = LEVELS[level]
    if known is None:
        return default
    wider = known.lanes / default.lanes  # a vector of this level is a part of one of the machine's
    return replace(
        known,
        lanes=default.lanes,
        registers=default.registers,
        multiply_adds=min(2.0, known.multiply_adds * wider),
        loads=min(2.0, known.loads * wider),
    )
