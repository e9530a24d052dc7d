"""Gives an installed kernel its verdict, from a new measurement or from an earlier one.

The size of the requested call is measured first, and its verdict is used while other sizes of the
class are measured. Results in the cache are final, unless they are doubtful: a kernel that lost
while other work disturbed its measurement is measured again later (remeasuring.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import XLA_CPU, KernelRequest
from composite.binding.log import logger
from composite.binding.records import AttrValue
from composite.binding.typed_record import Dims
from composite.compiler import account
from composite.kernels import gpu, shapes
from composite.kernels import key as keys
from composite.kernels.cache import Cache
from composite.kernels.expansions import expand
from composite.measuring import decisions, xla
from composite.measuring.decisions import Decision
from composite.measuring.measure import measure, sweep
from composite.measuring.repeated import HOST
from composite.ops import call, call_arguments, function_op, functions
from composite.progress import activity

# The longest estimated time of a node; sizes that take longer are not measured.
_LONGEST_US = 4000.0

_of_functions: dict[str, dict[tuple[str, tuple[Dims, ...]], KernelRecord]] = {}


def verdict(
    cache: Cache,
    key: str,
    made: KernelRecord,
    request: KernelRequest,
    stopping: Callable[[], bool],
) -> Decision:
    """Reinstalls a record with its verdict, measured here or by an earlier process."""
    decision = stored(cache, key, request)
    if decision is not None:
        install(made, decision)
        return decision
    for decision in measured(made, request):
        install(made, decision)
        if stopping():
            return decision
    assert decision is not None, "the size of the call that asked is always measured"
    # Another process may have measured it first. Its verdict is kept, so that both agree.
    theirs = stored(cache, key, request)
    if theirs is not None:
        install(made, theirs)
        return theirs
    store(cache, key, made, request, decision)
    return decision


def store(
    cache: Cache, key: str, made: KernelRecord, request: KernelRequest, decision: Decision
) -> None:
    """Stores a decision for later processes."""
    cache.store_timings(key, machine(request), decisions.to_json(decision).encode())
    logger.info(
        "%s: kernel %s takes %.1f us, the expansion %.1f us%s",
        request.op, made.name, decision.times.kernel_us, decision.times.expansion_us,
        " while the machine was busy" if decision.doubtful else "",
    )  # fmt: skip


def machine(request: KernelRequest) -> str:
    """The kind of machine for which times of a request's kernels are valid."""
    if request.is_for_xla:
        return keys.machine("XLA")
    return keys.machine(gpu.model(request.gpu) if request.gpu else "")


def stored(cache: Cache, key: str, request: KernelRequest) -> Decision | None:
    """The times measured on this kind of machine."""
    text = cache.load_timings(key, machine(request))
    return None if text is None else decisions.from_json(text)


def install(made: KernelRecord, decision: Decision) -> None:
    """Reinstalls a record with measured times."""
    points = decision.points
    measured = replace(
        made,
        verdict="kernel" if decision.kernel_wins else "expansion",
        kernel_us=decision.times.kernel_us,
        expansion_us=decision.times.expansion_us,
        sizes=tuple(point.size for point in points),
        kernel_times=tuple(point.times.kernel_us for point in points),
        expansion_times=tuple(point.times.expansion_us for point in points),
        kernel_wins=tuple(point.kernel_wins for point in points),
    )
    put(measured)
    keep(measured)


def keep(made: KernelRecord) -> None:
    """Remembers the kernel of an unnamed function, see `of_function`."""
    if made.op == function_op.NAME and made.device != XLA_CPU:
        _of_functions.setdefault(made.program, {})[made.name, made.in_shapes] = made


def of_function(function: str) -> list[KernelRecord]:
    """The kernels of an unnamed function with their measured times.

    They are saved together with models that contain such functions. Not for kernels of ops, which
    belong to built libraries.
    """
    return list(_of_functions.get(function, {}).values())


@account.step("install")
def put(made: KernelRecord) -> None:
    """Gives a record to the runtime, where it replaces an earlier one of the same kernel."""
    native.call("composite_install", made.to_node_def())


def measured(
    made: KernelRecord, request: KernelRequest, before: Decision | None = None
) -> Iterator[Decision]:
    """Measures an installed kernel: decides for the requested call first, then for its class.

    `before` is an earlier decision on the same kernel and machine, which decides close results.
    """
    activity.step("measure")
    dims, constants = request.in_shapes, request.constants
    values, *around = shapes.to_measure(request, made.minimums, made.divisors)
    asked = shapes.size(values)
    exact = shapes.substitute(dims, values)
    node, sizes = node_of(request), request.size_inputs
    body = functions.body(expand(request, exact))
    dtypes = body.input_dtypes
    fuses = not functions.has_empty_product(body, shapes.of_inputs(exact, sizes))
    device = gpu.device_name(request.gpu) if request.gpu else HOST
    own = specs(shapes.of_inputs(exact, sizes), dtypes)
    values_of_sizes = shapes.of_sizes(exact, sizes)
    if request.is_for_xla:  # a class of one call
        derived = request.op == function_op.NAME and not function_op.is_region(request.program)
        compiled = xla.measured(*node, own, values_of_sizes)
        yield xla.decided(compiled, asked, derived=derived)
        return
    settle = before is None  # which decides close results
    first = measure(*node, own, constants, values_of_sizes, device, settle=settle, fuses=fuses)
    times = {asked: first}
    yield decisions.decide(times, asked, before)
    longest = max(times[asked].kernel_us, times[asked].expansion_us)
    others = [v for v in around if longest * shapes.size(v) / asked <= _LONGEST_US]
    if not others:
        return
    unknown = [tuple(d if isinstance(d, int) else None for d in shape) for shape in dims]
    cases = [shapes.substitute(dims, v) for v in others]
    try:
        of_cases = [shapes.of_sizes(case, sizes) for case in cases]
        given = [shapes.of_inputs(case, sizes) for case in cases]
        varied = specs(shapes.of_inputs(unknown, sizes), dtypes)
        found = sweep(*node, varied, given, constants, of_cases, device, fuses=fuses)
    except (tf.errors.OpError, ValueError) as error:  # the body cannot be expanded without the dim
        logger.info("%s: kernel %s is measured at one size: %s", request.op, made.name, error)
        return
    times |= {shapes.size(v): t for v, t in zip(others, found, strict=True)}
    yield decisions.decide(times, asked, before)


def measured_library(
    made: KernelRecord, request: KernelRequest, library: Path, before: Decision | None = None
) -> Decision:
    """Measures a linked kernel that is not installed yet, which installs it."""
    digest = keys.sha256(library.read_bytes())
    trial = replace(made, library=str(library), library_sha256=digest)
    put(trial)
    *_, decision = measured(trial, request, before)
    # An unmeasured kernel would block an equal one that served calls before.
    install(trial, decision)
    return decision


def specs(dims: Sequence[Any], dtypes: Sequence[tf.DType]) -> list[tf.TensorSpec]:
    """The inputs of a call, as TensorFlow describes them."""
    return [tf.TensorSpec(shape, dtype) for shape, dtype in zip(dims, dtypes, strict=True)]


Keywords = Callable[[Sequence[Any]], dict[str, Any]]


def node_of(request: KernelRequest) -> tuple[str, Keywords, dict[str, AttrValue]]:
    """The first arguments of `measure` for a request.

    These are the op, a function from inputs to the keywords of a call, and the stamps of a node.
    """
    definition = call.op_def(request.op)
    derived, attrs = call_arguments.inferred(definition), request.attrs
    return (
        request.op,
        lambda inputs: call_arguments.keywords(definition, derived, attrs, inputs),
        request.stamps(),
    )
