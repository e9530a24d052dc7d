"""The measured kernels that this process runs for functions without a name of their own.

What saves such functions with a model takes their kernels along (composite/saving/region_kernels).
Not for: the kernels of ops, which libraries are built of from stated calls (composite/aot).
"""

from __future__ import annotations

from composite.binding.kernel_record import KernelRecord
from composite.binding.typed_record import Dims
from composite.ops import function_op

_records: dict[str, dict[tuple[str, tuple[Dims, ...]], KernelRecord]] = {}


def note(kernel: KernelRecord) -> None:
    """Has `of` find a kernel, in the place of what was measured of it before."""
    if kernel.op == function_op.NAME:
        _records.setdefault(kernel.program, {})[kernel.name, kernel.in_shapes] = kernel


def of(function: str) -> list[KernelRecord]:
    """The kernels of a function, by its name, with what was measured of them."""
    return list(_records.get(function, {}).values())
