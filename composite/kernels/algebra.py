"""Compares a kernel with its body over the ring in which both are equal bit for bit.

See docs/proofs.md. The loops are written a second time, with elements of the ring instead of
floats, as a program that the runtime interprets. They are compared at the sizes of the numeric
check, with one task and with several, and with outputs in the memory of inputs.

Not for: rounding, which does not exist in the ring (verify.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from composite.binding.environment import ALGEBRA
from composite.compiler.tvm import Kernel, NotCovered
from composite.kernels import host, verify
from composite.kernels.samples import Sample
from composite.reference import over_ring

Array = np.ndarray[Any, Any]

EQUAL = "equal by algebra"
_MOST = 1 << 24  # elements of a call


def is_wanted(*, ahead_of_time: bool = False) -> bool:
    """Whether kernels are compared. Those of a library are, unless COMPOSITE_ALGEBRA=0."""
    return (os.environ.get(ALGEBRA) or str(int(ahead_of_time))) == "1"


def uncovered(why: object) -> str:
    """The result for a kernel that was not compared."""
    return f"not compared by algebra: {why}"


def compared(library: Path, kernel: Kernel, samples: Iterable[Sample]) -> str:
    """The result of the comparison: that the kernel is equal, or why it was not compared.

    Raises Mismatch if its results differ from those of the body.
    """
    equal = False
    try:
        for sample in _by_shapes(samples):
            equal |= _is_equal(library, kernel, sample)
    except NotCovered as answer:
        return uncovered(answer)
    except _Larger:
        return uncovered(f"its tensors have more than {_MOST} elements") if not equal else EQUAL
    return EQUAL if equal else uncovered("it leaves all inputs to the expansion")


class _Larger(Exception):  # noqa: N818 - says what the sizes are
    pass


def _by_shapes(samples: Iterable[Sample]) -> Iterator[Sample]:
    """The first sample of each list of shapes."""
    seen: list[Sequence[tuple[int, ...]]] = []
    for sample in samples:
        if sample.shapes not in seen:
            seen.append(sample.shapes)
            yield sample


def _is_equal(library: Path, kernel: Kernel, sample: Sample) -> bool:
    """Whether the kernel took the inputs. Mismatch if its results differ from those of the body."""
    if sum(x.size for x in [*sample.inputs, *sample.expected]) > _MOST:
        raise _Larger
    random = np.random.default_rng(0)
    drawn = [over_ring.drawn(x, random) for x in sample.inputs]
    wanted = over_ring.results(sample.source.body, _with_sizes(sample, drawn))
    for tasks, over in _ways(kernel):
        try:
            found = verify.run_kernel(
                library, kernel.name, drawn, wanted, tasks, packed=kernel.packed, over=over
            )
        except host.Refused:
            return False
        for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
            if told := over_ring.difference(got, want):
                raise verify.Mismatch(
                    f"by algebra, output {number} of {sample.shapes} by {tasks} tasks: {told};"
                    f" strategy {kernel.strategy}"
                )
    return True


def _ways(kernel: Kernel) -> Iterator[tuple[int, dict[int, int]]]:
    """The ways to call a kernel that may give different results.

    Tasks that are proven free of races give the results of a single task. Outputs lie in inputs
    wherever they may: an element that the kernel does not write then holds the input's.
    """
    alone, apart, *in_place = verify.ways(kernel.forwards)
    if not kernel.proof.is_complete:
        yield alone
    yield from in_place or [apart]


def _with_sizes(sample: Sample, drawn: Sequence[Array]) -> list[Array]:
    """The inputs of the body, which takes the values of inputs that the kernel takes as sizes."""
    values = sample.draw.arrays
    return [values[i] if i in sample.draw.sizes else x for i, x in enumerate(drawn)]
