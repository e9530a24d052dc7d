"""Facts about processors, on which schedules depend. No other room of the compiler states any."""

from composite.compiler.tvm.machine.families import FAMILIES
from composite.compiler.tvm.machine.gpu import GPUS, GpuMachine
from composite.compiler.tvm.machine.host import HIGHEST, host_level, machine_named
from composite.compiler.tvm.machine.levels import AARCH64, BFLOAT16, LEVELS, machine_of
from composite.compiler.tvm.machine.machine import LINE_BYTES, PAGE_BYTES, Cache, Machine

__all__ = [
    "AARCH64",
    "BFLOAT16",
    "FAMILIES",
    "GPUS",
    "HIGHEST",
    "LEVELS",
    "LINE_BYTES",
    "PAGE_BYTES",
    "Cache",
    "GpuMachine",
    "Machine",
    "host_level",
    "machine_named",
    "machine_of",
]
