"""The kernel of a call: as TensorFlow dispatches it, and by itself on awkward buffers.

Where no kernel can be made of an op for some dtype or shape there is nothing to compare, and the
report says why.

Not for: whether a kernel is fast enough to be used (measuring/measure.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from composite.binding import settings
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.checking import variables
from composite.checking.compare import Closeness, Difference, same_bits
from composite.checking.oracle import Case, Outcome, outcome
from composite.checking.skipped import Skipped
from composite.compiler.tvm import NotCovered, Target
from composite.compiler_process.client import UNMADE
from composite.jit import worker
from composite.kernels import produce, verify
from composite.kernels.cache import open_default
from composite.kernels.expansions import Inexpandable
from composite.reference import floats

Array = np.ndarray[Any, Any]

_REFUSED = 'was called with backend="tvm": '


def dispatched(case: Case) -> Closeness:
    """A call with backend="tvm": the kernel on TensorFlow's buffers and threads, twice."""
    _require_compiler()
    found = _must(case)
    if why := refusal(found.error):
        if case.expected.error is not None:
            raise Skipped("the call raises")  # so there is nothing to compile
        raise Skipped(f"no kernel: {why}")
    close = case.agree(found)
    if found.error is None:
        same_bits(_must(case).values, found.values, case.names)
    return close


def unaligned(case: Case) -> Closeness:
    """The kernel by itself, between guards, at addresses that are aligned to an element only.

    With one thread and with two.
    """
    _require_compiler()
    if case.sample.variables:
        raise Skipped("no kernel: it takes variables")
    if case.expected.error is not None:
        raise Skipped("the call raises")
    made, library = _compiled(case)
    close = Closeness()
    for threads in (1, 2):
        inputs = [floats.unaligned(x) for x in case.sample.arrays()]
        try:
            found = verify.run_kernel(library, made.name, inputs, case.expected.values, threads)
        except (verify.Mismatch, RuntimeError) as error:
            raise Difference(f"with {threads} threads, {error}") from error
        close = close.worse(case.agree(Outcome(found)))
    return close


def _require_compiler() -> None:
    if not worker.running():
        raise Skipped("no kernel: this process compiles none (COMPOSITE_JIT=0, or TVM is missing)")


def _must(case: Case) -> Outcome:
    with settings.options(backend="tvm"):
        return outcome(
            lambda: variables.results(
                lambda inputs: case.op(*inputs, **case.sample.attrs), case.sample.tensors()
            )
        )


def refusal(error: Exception | None) -> str:
    """Why a call with backend="tvm" had no kernel; "" where it did not raise that it has none."""
    if not isinstance(error, tf.errors.FailedPreconditionError) or _REFUSED not in error.message:
        return ""
    reason = error.message.partition(_REFUSED)[2].partition(" [Op:")[0]
    shapes, colon, why = reason.partition(": ")
    return why if colon and shapes.startswith("no kernel for shapes") else reason


def _compiled(case: Case) -> tuple[KernelRecord, Path]:
    """The kernel for exactly these shapes, from the cache or compiled for it."""
    request = KernelRequest.of_call(case.op.request(*case.sample.tensors(), **case.sample.attrs))
    target = Target.host()
    cache = open_default()
    try:
        wanted = produce.identity(request).entry_key(target.key)
        known = produce.cached(request, cache, wanted)
        if known is not None:
            return known
        made, library = produce.compile_kernel(request, target)
    except (NotCovered, Inexpandable, verify.Mismatch, *UNMADE) as error:
        raise Skipped(f"no kernel: {error}") from error
    return made, cache.store(wanted, made.serialize(), library)
