"""What schedules know of NVIDIA's GPUs.

Sources: NVIDIA's tuning guides for Ampere, Hopper and Blackwell, and the tables of compute
capabilities in the CUDA C++ Programming Guide. Of a level the server GPU is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuMachine:
    """A GPU. Sizes are in bytes.

    Attributes:
        name: The level, such as "sm_90".
        multiprocessors: How many there are.
        shared_memory: What a block may have of a multiprocessor's.
        l2: The cache of all multiprocessors.
        bandwidth: Of memory, a second.
        registers: Of a thread.
        lanes: A thread computes element by element.
    """

    name: str
    multiprocessors: int
    shared_memory: int
    l2: int
    bandwidth: float
    registers: int = 255
    lanes: int = 1


_HOPPER = (132, 227 << 10, 50 << 20, 3.35e12)

GPUS = {
    one.name: one
    for one in (
        GpuMachine("sm_80", 108, 163 << 10, 40 << 20, 1.55e12),
        GpuMachine("sm_90", *_HOPPER),
        GpuMachine("sm_90a", *_HOPPER),
        GpuMachine("sm_100", 148, 227 << 10, 126 << 20, 8.0e12),
    )
}
