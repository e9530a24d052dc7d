"""The machine that a kernel is compiled for.

A target is a level of the x86-64 psABI, not a CPU model: the same source then gives the same bytes
on every machine of a level, and the level is what the runtime can check before it calls a kernel.
Above the psABI's own levels is one with instructions for products of bfloat16 and of bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import Self

from composite.compiler.tvm.machine import (
    AARCH64,
    BFLOAT16,
    GPUS,
    HIGHEST,
    LEVELS,
    GpuMachine,
    Machine,
    host_level,
    machine_named,
    machine_of,
)

ENVIRONMENT = "COMPOSITE_ISA"
MACHINE = "COMPOSITE_MACHINE"

CUDA_LEVELS = tuple(GPUS)
MOST_BLOCKS = (1 << 31) - 1
"""Blocks of a grid on NVIDIA's GPUs, in its first dimension."""


@dataclass(frozen=True)
class Target:
    """What kernels are compiled for.

    Attributes:
        mcpu: LLVM's name of the CPU.
        isa: The level that a CPU must have to run the kernel.
        cores: How many threads the schedule is made for.
        machine: The processor that the schedule is made for.
        invariant: Whether sums have one order, and arithmetic one rounding, that depend on the
            sizes summed over and on the machine alone: ``numerics="invariant"``.
    """

    mcpu: str
    isa: str
    cores: int
    machine: Machine | GpuMachine
    invariant: bool = False

    @classmethod
    def of(cls, isa: str, cores: int, machine: Machine | None = None) -> Target:
        """Return the target for a level, and for a processor or any one of that level.

        Raises:
            ValueError: For a level that kernels are not made for.
        """
        mcpu = "generic" if isa == AARCH64 else isa.removesuffix("-bf16")
        return cls(mcpu, isa, cores, machine_of(isa, machine))

    @classmethod
    def host(cls) -> Target:
        """Return the target for this machine: its highest level, its usable cores.

        COMPOSITE_ISA in the environment names a lower level, to do without what is above it;
        COMPOSITE_MACHINE the processor that schedules are made for, see `machine_named`.

        Raises:
            ValueError: If the environment names a level or a processor that there is not.
        """
        level = min(host_level(), os.environ.get(ENVIRONMENT) or HIGHEST)
        machine = machine_named(os.environ.get(MACHINE) or "level", level)
        return cls.of(level, len(os.sched_getaffinity(0)), machine)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """Return the target whose ``dataclasses.asdict`` these facts are."""
        return cls(**{**facts, "machine": Machine.of(facts["machine"])})

    @property
    def device(self) -> str:
        """The kind of device, whose strategies write the kernel."""
        return "cpu"

    @property
    def is_foreign(self) -> bool:
        """Whether no machine that compiles has such a CPU."""
        return self.isa == AARCH64

    @property
    def key(self) -> str:
        """A short text that differs where the generated code does."""
        machine = "" if self.machine == LEVELS.get(self.isa) else f"-{self.machine.name}"
        return f"{self.isa}-{self.cores}{machine}{'-invariant' * self.invariant}"

    @property
    def has_fma(self) -> bool:
        """Whether a product and a sum are rounded once."""
        return self.isa != "x86-64-v2"

    @property
    def has_bfloat16(self) -> bool:
        """Whether there are products of pairs of bfloat16, added up in float32."""
        return self.isa == BFLOAT16

    @property
    def has_int16_pairs(self) -> bool:
        """Whether there are products of pairs of int16, added up in int32."""
        return self.isa != AARCH64

    @property
    def has_quads(self) -> bool:
        """Whether there are products of four uint8 and int8, added up in int32."""
        return self.isa == BFLOAT16

    @property
    def lanes(self) -> int:
        """float32 elements in a vector register."""
        return self.machine.lanes

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return self.machine.registers

    def tvm(self) -> dict[str, object]:
        """Return TVM's description of the target."""
        described = {"kind": "llvm", "mcpu": self.mcpu, "num-cores": self.cores}
        # Level 3 unrolls loops around tiles: registers spill then, and LLVM 22 makes code of some
        # convolutions that it refuses itself.
        described["opt-level"] = 2
        if self.isa == AARCH64:
            return described | {"mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}
        # Where LLVM prefers vectors of 256 bits, it stores one of 512 in two halves.
        features = ["-prefer-256-bit"] if self.lanes == 16 else []
        features += ["+avx512bf16", "+avx512vnni"] if self.has_bfloat16 else []
        return described | ({"mattr": features} if features else {})


@dataclass(frozen=True)
class CudaTarget(Target):
    """A level of NVIDIA's GPUs that kernels are written for, such as "sm_90".

    A thread computes element by element, so that there are no lanes. How many multiprocessors a
    GPU has is known when it runs a kernel, not here.

    Attributes:
        tensor_float_32: Whether products of float32 may multiply 10 bits of each mantissa, on
            tensor cores. It is TensorFlow's to say:
            ``tf.config.experimental.tensor_float_32_execution_enabled()``.
        is_portable: The machine code is to be PTX, for GPUs that run none of a known level.
    """

    tensor_float_32: bool = False
    is_portable: bool = False

    @classmethod
    def level(cls, name: str, *, tensor_float_32: bool = False) -> CudaTarget:
        """Return the target for a level; ValueError for one that kernels are not made for."""
        if name not in CUDA_LEVELS:
            raise ValueError(
                f"{name!r} is no level that kernels are made for: {', '.join(CUDA_LEVELS)}"
            )
        return cls(name, name, 1, GPUS[name], tensor_float_32=tensor_float_32)

    @classmethod
    def of_device(cls, device: str, *, tensor_float_32: bool = False) -> CudaTarget:
        """Return the target for a GPU that the runtime names, such as "cuda:sm_86".

        It is the highest level of the GPU's own major number, whose cubins the GPU runs; for a
        later one PTX of the highest level that there is. ValueError where the GPU has less than
        the lowest level.
        """
        number = int(device.removeprefix("cuda:sm_"))
        known = [n for n in CUDA_LEVELS if n[-1].isdigit() and int(n[3:]) <= number]
        if not known:
            raise ValueError(f"kernels need a GPU of level {CUDA_LEVELS[0]}, and this is {device}")
        level = max(known, key=lambda name: int(name[3:]))
        is_portable = int(level[3:]) // 10 != number // 10
        known_level = cls.level(level, tensor_float_32=tensor_float_32)
        return replace(known_level, is_portable=is_portable)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """Return the target whose ``dataclasses.asdict`` these facts are."""
        return cls(**{**facts, "machine": GpuMachine(**facts["machine"])})

    @property
    def device(self) -> str:
        """The kind of device."""
        return "cuda"

    @property
    def has_warp_groups(self) -> bool:
        """Whether four warps multiply together (``wgmma``), as on GPUs of level 9.0 alone."""
        return self.isa in ("sm_90", "sm_90a") and not self.is_portable

    @property
    def key(self) -> str:
        """A short text that differs where the generated code does."""
        tf32, ptx = "-tf32" * self.tensor_float_32, "-ptx" * self.is_portable
        return f"cuda-{self.isa}{tf32}{ptx}"

    @property
    def has_fma(self) -> bool:
        """Whether a product and a sum are rounded once."""
        return True

    def tvm(self) -> dict[str, object]:
        """Return TVM's description of the target."""
        return {"kind": "cuda", "arch": self.isa}
