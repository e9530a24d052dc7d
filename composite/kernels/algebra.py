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
import tensorflow as tf

from composite.binding.environment import ALGEBRA
from composite.compiler.tvm import Kernel, NotCovered
from composite.kernels import host, verify
from composite.kernels.samples import Sample
from composite.reference import over_ring

Array = np.ndarray[Any, Any]

EQUAL = "equal by algebra"

# A comparison at larger sizes takes longer than compiling does.
_MOST_ELEMENTS = 1 << 24  # of the tensors
_MOST_STEPS = 1 << 27  # instructions of the loops
_MOST_OPS = 50_000  # that the body runs


def is_wanted() -> bool:
    """Whether kernels are compared: unless COMPOSITE_ALGEBRA=0."""
    return os.environ.get(ALGEBRA) != "0"


def uncovered(why: object) -> str:
    """The result for a kernel that was not compared."""
    return f"not compared by algebra: {why}"


def compared(library: Path, kernel: Kernel, samples: Iterable[Sample]) -> str:
    """The result of the comparison: that the kernel is equal, or why it was not compared.

    `samples`: one for each list of shapes. Raises Mismatch if its results differ from those of the
    body.
    """
    equal = False
    why = "it leaves all inputs to the expansion"
    for sample in samples:
        try:
            equal |= _is_equal(library, kernel, sample)
        except NotCovered as answer:
            return uncovered(answer)
        except _Larger as answer:
            why = str(answer)
    return EQUAL if equal else uncovered(why)


class _Larger(Exception):  # noqa: N818 - says what is large
    pass


def _is_equal(library: Path, kernel: Kernel, sample: Sample) -> bool:
    """Whether the kernel took the inputs. Mismatch if its results differ from those of the body."""
    if sum(x.size for x in [*sample.inputs, *sample.expected]) > _MOST_ELEMENTS:
        raise _Larger(f"its tensors have more than {_MOST_ELEMENTS} elements")
    if sample.source.steps > _MOST_OPS:
        raise _Larger(f"its body runs more than {_MOST_OPS} ops")
    random = np.random.default_rng(0)
    drawn = [over_ring.drawn(x, random) for x in sample.inputs]
    found = []
    try:
        for tasks, over in _ways(kernel):
            outputs = verify.run_kernel(
                library, kernel.name, drawn, sample.expected, tasks,
                packed=kernel.packed, over=over, steps=_MOST_STEPS,
            )  # fmt: skip
            found.append((tasks, outputs))
    except host.Refused:
        return False
    except host.TooLong:
        raise _Larger(f"it runs more than {_MOST_STEPS} instructions over the ring") from None
    try:
        wanted = over_ring.results(sample.source.body, _with_sizes(sample, drawn))
    except tf.errors.OpError as error:
        raise NotCovered(f"its body over the ring raises {error.message}") from error
    for tasks, outputs in found:
        for number, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
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
