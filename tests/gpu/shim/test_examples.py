"""The kernels of the examples' ops for a GPU, with their gradients, on threads of the host.

They are those that `composite.lint` asks for. Each is held to what a new kernel is held to before a
call gets its results: ordinary and adversarial inputs, the expansion and float64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import proofs
from benchmarks.proofs import Asked
from composite.compiler.tvm.cuda import nvrtc
from composite.compiler.tvm.cuda.build import CudaKernel, write_cuda
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.compiler.tvm.target import CudaTarget
from composite.kernels import gpu
from composite.kernels.samples import Sample, Samples
from composite.kernels.verify import Oracle
from tests.gpu.shim.emulator import Emulator, functions_of

pytestmark = [pytest.mark.slow, pytest.mark.many_cases]

_OP = re.compile(r"__composite_(\w+)_[0-9a-f]+$")
_FLOAT32 = 1  # of TensorFlow's enum; the strategies' own tests have 16-bit floats
_MOST = 1 << 14  # elements of all inputs: one that computes them here is a million times slower
_TARGET = CudaTarget.level("sm_80")


def asked(example: str, patch: pytest.MonkeyPatch) -> dict[str, Asked]:
    """Of each function of an example's ops, the kernel whose sizes vary most."""
    patch.setattr(proofs, "GALLERY", {})
    patch.setattr(proofs, "EXAMPLES", (example,))
    found: dict[str, Asked] = {}
    for one in proofs.asked():
        signature = one.library.function[0].signature
        dtypes = {arg.type for arg in signature.input_arg}
        (op,) = _OP.findall(signature.name) or [signature.name]
        name = f"{op}_{'_'.join(map(str, sorted(dtypes)))}"
        small = sum(int(np.prod(s)) for s in sizes_of(one)) <= _MOST
        if small and _FLOAT32 in dtypes and varying(one) > varying(found.get(name)):
            found[name] = one
    return found


def varying(one: Asked | None) -> int:
    """How many dims may have any size; -1 of no kernel."""
    return -1 if one is None else sum(isinstance(d, str) for shape in one.shapes for d in shape)


def sizes_of(one: Asked) -> list[tuple[int, ...]]:
    """Shapes of a call: no size is another's."""
    return [tuple(2 * int(d[1:]) + 3 if isinstance(d, str) else d for d in s) for s in one.shapes]


def check(emulator: Emulator, kernel: CudaKernel, one: Asked) -> float:
    """The error of a kernel; raises verify.Mismatch."""

    def results(sample: Sample) -> Iterator[tuple[int, list[Any]]]:
        dtypes = [y.dtype for y in sample.expected]
        yield 1, emulator.run(kernel, sample.inputs, one.shapes, dtypes)

    samples = Samples(lambda _: one.library, [sizes_of(one)], one.sizes, gpu.ARITHMETIC)
    return Oracle(samples).compare(results).error


@pytest.mark.parametrize(
    ("example", "count"),
    [("blocks", 20), ("digits", 2), ("mirror_pad", 1), ("out_of_tree", 1), ("stock_ops", 2)],
)
def test_kernels(example: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = {
        name: (write_cuda(one.library, one.shapes, target=_TARGET, name=name, sizes=one.sizes), one)
        for name, one in asked(example, monkeypatch).items()
    }
    assert len(kernels) >= count
    if nvrtc.available():
        source = PREAMBLE + "".join(functions_of(kernel) for kernel, _ in kernels.values())
        launches = [one for kernel, _ in kernels.values() for one in kernel.plan.launches]
        assert nvrtc.cubin(source, "sm_80").usage.keys() == {one.function for one in launches}
    emulator = Emulator([kernel for kernel, _ in kernels.values()], tmp_path)
    for kernel, one in kernels.values():
        assert check(emulator, kernel, one) <= 1
