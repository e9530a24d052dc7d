"""Serves a request of the runtime: makes a kernel, installs it, and decides where it runs.

The steps are: expand the shape class, compile, check, store in the cache, install, measure
(`verdicts`). Kernels in the cache were checked when they were made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.binding.records import NodeDef
from composite.compiler import account
from composite.compiler.tvm import Chosen, Kernel, NotCovered, Target
from composite.compiler.tvm.build import OUT_OF_RANGE
from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.target import CudaTarget
from composite.compiler_process import client
from composite.compiler_process.client import Stopped
from composite.compiler_process.tasks import Loops, Made
from composite.kernels import (
    algebra,
    chosen,
    cpu,
    gpu,
    memory,
    refusals,
    remeasuring,
    shapes,
    verify,
)
from composite.kernels.cache import Cache
from composite.kernels.chosen import NOTHING
from composite.kernels.expansions import expand, expansion
from composite.kernels.key import Identity, sha256, toolchain_key
from composite.kernels.samples import Samples, samples_of
from composite.kernels.targets import target_of
from composite.kernels.verdicts import keep, put, stored, verdict
from composite.measuring import turns
from composite.progress import activity
from composite.reference.exact import is_exact
from composite.reference.source import CPU, Arithmetic


class Outcome(NamedTuple):
    """The outcome of a request, and the reason.

    Attributes:
        status: "kernel", "expansion" (measured slower), "not_covered" or "failed".
        sizes: the inputs whose values are sizes in another class, for which there may be a kernel.
        node: the node of the function that has no lowering even at known sizes.
    """

    status: str
    reason: str
    sizes: tuple[int, ...] = ()
    node: str = ""


NO_THREADS = (
    "the cache has no kernel that was measured, and a process that was forked after TensorFlow's "
    "first op has no threads to make one with"
)
REFUSES = (
    "for some inputs, such as an index out of range, the kernel leaves the call to the expansion, "
    "which code of XLA cannot run then"
)


class Unknown(Exception):  # noqa: N818 - not an error
    """The kernel is not in the cache and cannot be made here; the message says why."""


def produce(
    request: KernelRequest,
    cache: Cache,
    stopping: Callable[[], bool],
    *,
    must_be_known: bool = False,
) -> Outcome:
    """Serves one request.

    Raises NotCovered, Inexpandable, verify.Mismatch, claims.Claimed, and the client's errors.
    Calls `stopping()` between steps, and raises Stopped if it returns true.
    `must_be_known`: this process can neither check nor measure; Unknown if it would have to.
    """
    target, own = target_of(request), identity(request)
    general = own.entry_key(target.key)
    with cache.claims.claim(general):
        refusals.check(cache, general, request.op)
        try:
            return _produced(request, cache, target, own, stopping, must_be_known=must_be_known)
        except (NotCovered, verify.Mismatch) as error:
            # A tuned kernel may be wrong where the default one is right.
            if isinstance(error, NotCovered) or not chosen.databases():
                refusals.note(cache, general, request, error)
            raise


def _produced(  # noqa: PLR0913 - as produce, and what it found out
    request: KernelRequest,
    cache: Cache,
    target: Target,
    own: Identity,
    stopping: Callable[[], bool],
    *,
    must_be_known: bool,
) -> Outcome:
    choices = chosen.choices_for(
        own,
        target,
        lambda given: write(request, target, given, stopping),
        chosen.databases(),
        known=lambda given: cache.load(own.entry_key(target.key, given)) is not None,
    )
    key = own.entry_key(target.key, choices)
    entry = cached(request, cache, key)
    is_measured = request.invariant or stored(cache, key, request) is not None
    if must_be_known and (entry is None or not is_measured):
        raise Unknown(NO_THREADS)
    if entry is not None:
        made, path = entry
        logger.info("%s: kernel %s is in the cache", request.op, made.name)
        return settled(request, cache, key, replace(made, library=str(path)), stopping)
    with turns.making():
        made, library = compile_kernel(request, target, choices, stopping)

    def kept() -> Outcome:
        path = cache.store(key, made.serialize(), library)
        return settled(request, cache, key, replace(made, library=str(path)), stopping)

    try:
        return kept()
    except tf.errors.NotFoundError:  # the folder was removed before its library was opened
        return kept()


def settled(
    request: KernelRequest,
    cache: Cache,
    key: str,
    made: KernelRecord,
    stopping: Callable[[], bool],
) -> Outcome:
    """Installs a checked kernel, and then its verdict."""
    if stopping():
        raise Stopped
    if request.is_for_xla:
        if OUT_OF_RANGE in Path(str(made.library)).read_bytes():  # the kind of the error
            return Outcome("not_covered", REFUSES)
        made = replace(made, device=request.device)
    put(made)
    if request.invariant:  # which runs, be it slower or not
        keep(made)
        return Outcome("kernel", "")
    decision = verdict(cache, key, made, request, stopping)
    remeasuring.plan(decision, cache, key, made, request)
    if decision.kernel_wins:
        return Outcome("kernel", "")
    both = f"{decision.times.kernel_us:.1f} us against {decision.times.expansion_us:.1f} us"
    return Outcome("expansion", f"measured slower: {both}")


def cached(request: KernelRequest, cache: Cache, key: str) -> tuple[KernelRecord, Path] | None:
    """A request's kernel in the cache and the path of its library; None if it is missing.

    It may come from another version of the op with the same expansion. A kernel that was not
    compared by algebra counts as missing if that is wanted.
    """
    entry = cache.load(key)
    if entry is None:
        return None
    made = KernelRecord.parse(NodeDef.FromString(entry[0]))
    if algebra.is_wanted() and not made.algebra:
        return None
    return replace(made, program=request.program), entry[1]


def identity(request: KernelRequest) -> Identity:
    """The identity of a request's kernels. Raises as `compile_object`."""
    return Identity.of(request, expansion(request))


def kernel_name(request: KernelRequest, choices: Chosen = NOTHING) -> str:
    """The C name of a request's kernel, which is deterministic and unique.

    Raises as `compile_object`.
    """
    return f"{request.op}_{identity(request).entry_key('', choices)[:16]}"


def compile_kernel(
    request: KernelRequest,
    target: Target,
    choices: Chosen = NOTHING,
    stopping: Callable[[], bool] = client.never,
) -> tuple[KernelRecord, bytes]:
    """Compiles and checks a kernel. Returns its record and its loadable library as bytes.

    For a GPU the bytes are machine code.
    """
    if isinstance(target, CudaTarget):
        record, image = compile_image(request, target, choices, stopping)
        record = checked(request, record, image, tensor_float_32=target.tensor_float_32)
        return replace(record, library_sha256=sha256(image), toolchain=toolchain_key()), image
    name = kernel_name(request, choices)
    made = _linked(request, target, name, choices, stopping, over_ring=algebra.is_wanted())
    kernel, library = made.kernel, made.library
    assert library is not None, "it was asked for"
    assert isinstance(kernel, Kernel), "it was asked for"
    with memory.file(library) as path:
        record = cpu.record_of(request, kernel, target, tuned=bool(choices))
        record = with_accuracy(record, request, check(request, kernel, path))
    return replace(record, library_sha256=sha256(library), toolchain=toolchain_key()), library


def compile_image(
    request: KernelRequest,
    target: CudaTarget,
    choices: Chosen = NOTHING,
    stopping: Callable[[], bool] = client.never,
    *,
    name: str | None = None,
) -> tuple[KernelRecord, bytes]:
    """Compiles a kernel for a GPU that this machine may not have, without a check.

    Returns its record and its machine code. `name` replaces that of kernel_name.
    """
    made = _linked(request, target, name or kernel_name(request, choices), choices, stopping)
    assert isinstance(made.kernel, CudaKernel), "it was asked for"
    assert made.library is not None, "it was asked for"
    return gpu.record_of(request, made.kernel, tuned=bool(choices)), made.library


def checked(
    request: KernelRequest, record: KernelRecord, image: bytes, *, tensor_float_32: bool = False
) -> KernelRecord:
    """The record of a kernel for a GPU with the result of its check. Raises as `gpu.check`."""
    arithmetic = gpu.ARITHMETIC._replace(tensor_float_32=tensor_float_32)
    standard = oracle(request, record.minimums, arithmetic=arithmetic)
    found = gpu.check(standard, record, image)
    if algebra.is_wanted():
        found = found._replace(algebra=algebra.uncovered("it is for a GPU"))
    return with_accuracy(record, request, found)


def _linked(
    request: KernelRequest,
    target: Target,
    name: str,
    choices: Chosen,
    stopping: Callable[[], bool],
    **wanted: Any,
) -> Made:
    runtime = str(native.library_path().resolve())
    return _compiled(request, target, name, choices, stopping, runtime=runtime, **wanted)


def compile_object(
    request: KernelRequest,
    target: Target,
    name: str | None = None,
    choices: Chosen = NOTHING,
    *,
    over_ring: bool = False,
) -> Kernel:
    """Compiles the kernel of a request. `name` replaces that of kernel_name.

    `over_ring`: also compile the programs by which the check compares it by algebra.

    Raises NotCovered if there can be no kernel, Inexpandable if there is nothing to compile, and
    the client's errors.
    """
    name = name or kernel_name(request, choices)
    kernel = _compiled(request, target, name, choices, over_ring=over_ring).kernel
    assert isinstance(kernel, Kernel), "it was asked for"
    return kernel


def _compiled(
    request: KernelRequest,
    target: Target,
    name: str,
    choices: Chosen,
    stopping: Callable[[], bool] = client.never,
    **wanted: Any,
) -> Made:
    activity.step("compile")
    start = time.perf_counter()
    made = _perform(request, target, choices, stopping, name=name, **wanted)
    native.call("composite_count_compile")
    logger.info("%s: kernel %s compiled in %.2f s", request.op, name, time.perf_counter() - start)
    return made


def sized(request: KernelRequest, target: Target) -> KernelRequest:
    """The request with those inputs as sizes whose values its kernel needs.

    Raises as `write`, except NotCovered: then it returns the request as far as it is known.
    """
    while True:
        try:
            write(request, target)
        except NotCovered as answer:
            others = set(answer.sizes) - set(request.size_inputs)
            if not others:
                return request
            request = shapes.with_sizes(request, sorted(others))
        else:
            return request


def write(
    request: KernelRequest,
    target: Target,
    choices: Chosen = NOTHING,
    stopping: Callable[[], bool] = client.never,
) -> Loops:
    """Writes the loops of a request's kernel. Raises as `compile_object`.

    `choices` that this kernel does not have are ignored; the result has those that were made.
    """
    return _perform(request, target, choices, stopping).loops


def _perform(
    request: KernelRequest,
    target: Target,
    choices: Chosen,
    stopping: Callable[[], bool],
    **wanted: Any,
) -> Made:
    task = client.task_of(
        expansion(request),
        request.in_shapes,
        target=target,
        sizes=request.size_inputs,
        constants=request.constants,
        choices=choices,
        **wanted,
    )
    return client.perform(task, stopping)


def check(request: KernelRequest, kernel: Kernel, library: Path) -> verify.Accuracy:
    """Checks a linked kernel at the sizes of the call and at awkward ones. Returns its accuracy.

    A kernel with programs over the ring is also compared by algebra.
    """
    samples = samples_of(
        request, kernel.minimums, kernel.divisors, telling=kernel.telling, keeps=False
    )
    found = compare(verify.Oracle(samples), kernel, library)
    if not kernel.ring_programs and not kernel.no_ring_programs:
        return found
    return found._replace(algebra=by_algebra(kernel, samples))


def by_algebra(kernel: Kernel, samples: Samples) -> str:
    """The result of the comparison by algebra; verify.Mismatch if the kernel differs."""
    if not kernel.ring_programs:
        return algebra.uncovered(kernel.no_ring_programs)
    with account.step("algebra"), memory.file(kernel.ring_programs) as path:
        return algebra.compared(path, kernel, samples.firsts())


def compare(with_: verify.Oracle, kernel: Kernel, library: Path) -> verify.Accuracy:
    """Checks a linked kernel with an `oracle` of its request."""
    activity.step("check")
    return with_.check(library, kernel.name, kernel.packed, kernel.forwards, kernel.guarded)


def oracle(
    request: KernelRequest,
    minimums: Sequence[int],
    divisors: Sequence[int] = (),
    arithmetic: Arithmetic = CPU,
    telling: Sequence[Sequence[int]] = (),
) -> verify.Oracle:
    """The oracle for the kernels of a request, see `samples_of`."""
    return verify.Oracle(samples_of(request, minimums, divisors, arithmetic, telling))


def with_accuracy(
    made: KernelRecord, request: KernelRequest, found: verify.Accuracy
) -> KernelRecord:
    """The record with the results of the check."""
    exact = found.same_bits and is_exact(expand(request, request.in_shapes))
    return replace(
        made, error=found.error, error_unit=found.unit, exact=exact, algebra=found.algebra
    )
