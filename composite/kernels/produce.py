"""From a request of the runtime to an installed kernel with a verdict.

The pipeline in plain lines: expand the shape class, compile, check, keep in the cache, install,
then its verdict (`verdicts`). A kernel from the cache was checked when it was made.
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
from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.target import CudaTarget
from composite.compiler_process import client
from composite.compiler_process.client import Stopped
from composite.compiler_process.tasks import Loops, Made
from composite.kernels import algebra, chosen, cpu, gpu, memory, refusals, shapes, turns, verify
from composite.kernels.cache import Cache
from composite.kernels.chosen import NOTHING
from composite.kernels.expansions import expand, expansion
from composite.kernels.key import Identity, sha256, toolchain_key
from composite.kernels.samples import Samples, samples_of
from composite.kernels.verdicts import put, stored, verdict
from composite.progress import activity
from composite.reference.exact import is_exact
from composite.reference.source import CPU, Arithmetic


class Outcome(NamedTuple):
    """What became of a request, and why.

    Attributes:
        status: "kernel", "expansion" (measured slower), "not_covered" or "failed".
        sizes: where there may be a kernel of another class, the inputs whose values it takes for
            sizes.
        node: what has no lowering at known sizes, a node of the function that was to be compiled.
    """

    status: str
    reason: str
    sizes: tuple[int, ...] = ()
    node: str = ""


NO_THREADS = (
    "the cache has no kernel that was measured, and a process that was forked after TensorFlow's "
    "first op has no threads to make one with"
)


class Unknown(Exception):  # noqa: N818 - not an error
    """The kernel is not in the cache, and cannot be made here; the message says why."""


def produce(
    request: KernelRequest,
    cache: Cache,
    stopping: Callable[[], bool],
    *,
    must_be_known: bool = False,
) -> Outcome:
    """Serves one request.

    Raises NotCovered, Inexpandable, verify.Mismatch, claims.Claimed, and as the client does.
    `stopping()` is asked between the steps; Stopped is raised when it says so.
    `must_be_known`: this process can neither check nor measure; Unknown where that is needed.
    """
    target, own = target_of(request), identity(request)
    general = own.entry_key(target.key)
    with cache.claims.claim(general):
        refusals.check(cache, general, request.op)
        try:
            return _produced(request, cache, target, own, stopping, must_be_known=must_be_known)
        except (NotCovered, verify.Mismatch) as error:
            # A kernel that was tuned may be wrong where another is right.
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
    if must_be_known and (entry is None or stored(cache, key, request) is None):
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
    except tf.errors.NotFoundError:  # somebody has removed the folder before it was in use
        return kept()


def settled(
    request: KernelRequest,
    cache: Cache,
    key: str,
    made: KernelRecord,
    stopping: Callable[[], bool],
) -> Outcome:
    """Installs a kernel that was checked, then its verdict."""
    if stopping():
        raise Stopped
    put(made)
    decision = verdict(cache, key, made, request, stopping)
    if decision.kernel_wins:
        return Outcome("kernel", "")
    both = f"{decision.times.kernel_us:.1f} us against {decision.times.expansion_us:.1f} us"
    return Outcome("expansion", f"measured slower: {both}")


def target_of(request: KernelRequest) -> Target:
    """What a request's kernel is compiled for: this CPU, or the level of its GPU.

    NotCovered for a GPU below the lowest level.
    """
    if not request.device:
        return Target.host()
    try:
        allowed = tf.config.experimental.tensor_float_32_execution_enabled()
        return CudaTarget.of_device(request.device, tensor_float_32=allowed)
    except ValueError as error:
        raise NotCovered(str(error)) from None


def cached(request: KernelRequest, cache: Cache, key: str) -> tuple[KernelRecord, Path] | None:
    """The kernel of a request in the cache, and the path of its library; None if there is none.

    Another version of the op may have put it there: one that expands to the same. One that was not
    compared by algebra is none where that is wanted.
    """
    entry = cache.load(key)
    if entry is None:
        return None
    made = KernelRecord.parse(NodeDef.FromString(entry[0]))
    if algebra.is_wanted() and not made.algebra:
        return None
    return replace(made, program=request.program), entry[1]


def identity(request: KernelRequest) -> Identity:
    """What the kernels of a request are made of; raises as `compile_object`."""
    return Identity.of(request, expansion(request))


def kernel_name(request: KernelRequest, choices: Chosen = NOTHING) -> str:
    """The C name of a request's kernel: deterministic, and different for different ones.

    Raises as `compile_object`.
    """
    return f"{request.op}_{identity(request).entry_key('', choices)[:16]}"


def compile_kernel(
    request: KernelRequest,
    target: Target,
    choices: Chosen = NOTHING,
    stopping: Callable[[], bool] = client.never,
) -> tuple[KernelRecord, bytes]:
    """Compiles and checks a kernel. Returns its record and the bytes of its loadable library.

    Of a kernel for a GPU, these are machine code.
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
    """Compiles a kernel for a GPU, which need not be here: nothing is checked.

    Returns its record and its machine code. `name` is another one than kernel_name's.
    """
    made = _linked(request, target, name or kernel_name(request, choices), choices, stopping)
    assert isinstance(made.kernel, CudaKernel), "it was asked for"
    assert made.library is not None, "it was asked for"
    return gpu.record_of(request, made.kernel, tuned=bool(choices)), made.library


def checked(
    request: KernelRequest, record: KernelRecord, image: bytes, *, tensor_float_32: bool = False
) -> KernelRecord:
    """The record of a kernel for a GPU with what its check found; raises as `gpu.check`."""
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
    """Compiles the kernel of a request; `name` is another one than kernel_name's.

    `over_ring`: so that its check compares it with its body by algebra.

    NotCovered when there cannot be one, Inexpandable when there is nothing to compile; and what the
    client raises.
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
    """The request with those inputs for sizes whose values its kernel needs to know.

    Raises as `write`, but for NotCovered: it is the request then as far as that is known.
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
    """Writes the loops of a request's kernel; raises as `compile_object`.

    `choices` that this kernel does not have are left out; what was chosen is in the result.
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
    """Checks a linked kernel on the sizes of the call and on awkward ones; returns its error.

    A kernel that was compiled with its programs over the ring is also compared by algebra.
    """
    samples = samples_of(request, kernel.minimums, kernel.divisors, telling=kernel.telling)
    found = compare(verify.Oracle(samples), kernel, library)
    if not kernel.over_ring:
        return found
    return found._replace(algebra=by_algebra(kernel, samples))


def by_algebra(kernel: Kernel, samples: Samples) -> str:
    """What is said of a kernel over the ring; verify.Mismatch where it differs there."""
    if isinstance(kernel.over_ring, str):
        return algebra.uncovered(kernel.over_ring)
    with account.step("algebra"), memory.file(kernel.over_ring) as path:
        return algebra.compared(path, kernel, samples)


def compare(with_: verify.Oracle, kernel: Kernel, library: Path) -> verify.Accuracy:
    """Checks a linked kernel with what `oracle` gave for its request."""
    activity.step("check")
    return with_.check(library, kernel.name, kernel.packed, kernel.forwards, kernel.guarded)


def oracle(
    request: KernelRequest,
    minimums: Sequence[int],
    divisors: Sequence[int] = (),
    arithmetic: Arithmetic = CPU,
    telling: Sequence[Sequence[int]] = (),
) -> verify.Oracle:
    """What the kernels of a request are checked with, see `samples_of`."""
    return verify.Oracle(samples_of(request, minimums, divisors, arithmetic, telling))


def with_accuracy(
    made: KernelRecord, request: KernelRequest, found: verify.Accuracy
) -> KernelRecord:
    """The record with what the check found."""
    exact = found.same_bits and is_exact(expand(request, request.in_shapes))
    return replace(
        made, error=found.error, error_unit=found.unit, exact=exact, algebra=found.algebra
    )
