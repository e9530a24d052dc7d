"""From a request of the runtime to an installed kernel with a verdict.

The pipeline in plain lines: expand the shape class, compile, check, keep in the cache, install,
then its verdict (`verdicts`). A kernel from the cache was checked when it was made.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.binding.records import NodeDef
from composite.compiler.tvm.choices import Chosen
from composite.kernels import chosen, shapes, verify
from composite.kernels.cache import Cache
from composite.kernels.chosen import NOTHING
from composite.kernels.exact import is_exact
from composite.kernels.expansions import expand
from composite.kernels.key import Identity, sha256
from composite.kernels.verdicts import verdict


class Outcome(NamedTuple):
    """What became of a request: "kernel", "expansion" (measured slower), and why."""

    status: str
    reason: str


class Inexpandable(Exception):  # noqa: N818 - the caller's error, not ours
    """The body does not accept these shapes or attributes; the message has the author's place."""


class Stopped(Exception):  # noqa: N818 - not an error
    """The process ends: what is left of a request is not worth waiting for."""


def produce(request: KernelRequest, cache: Cache, stopping: Callable[[], bool]) -> Outcome:
    """Serves one request. Raises NotCovered, Inexpandable, verify.Mismatch, what the compiler does.

    `stopping()` is asked between the steps; Stopped is raised when it says so.
    """
    from composite.compiler import tvm as backend

    target = backend.Target.host()
    own = identity(request)
    choices = chosen.choices_for(
        own,
        target,
        lambda given: write(request, target, given),
        chosen.databases(),
        known=lambda given: cache.load(own.entry_key(target.key, given)) is not None,
    )
    key = own.entry_key(target.key, choices)
    entry = cached(request, cache, key)
    if entry is None:
        made, library = compile_kernel(request, target, choices)
        path = cache.store(key, made.serialize(), library)
    else:
        made, path = entry
        logger.info("%s: kernel %s is in the cache", request.op, made.name)
    made = replace(made, library=str(path))
    if stopping():
        raise Stopped
    native.call("composite_install", made.to_node_def())
    decision = verdict(cache, key, made, request, stopping)
    if decision.kernel_wins:
        return Outcome("kernel", "")
    times = decision.times
    return Outcome(
        "expansion",
        f"measured slower: {times.kernel_us:.1f} us against {times.expansion_us:.1f} us",
    )


def cached(request: KernelRequest, cache: Cache, key: str) -> tuple[KernelRecord, Path] | None:
    """The kernel of a request in the cache, and the path of its library; None if there is none.

    Another version of the op may have put it there: one that expands to the same.
    """
    entry = cache.load(key)
    if entry is None:
        return None
    made = KernelRecord.parse(NodeDef.FromString(entry[0]))
    return replace(made, program=request.program), entry[1]


def identity(request: KernelRequest) -> Identity:
    """What the kernels of a request are made of; raises as `compile_object`."""
    return Identity.of(request, _expansion(request))


def kernel_name(request: KernelRequest, choices: Chosen = NOTHING) -> str:
    """The C name of a request's kernel: deterministic, and different for different ones.

    Raises as `compile_object`.
    """
    return f"{request.op}_{identity(request).entry_key('', choices)[:16]}"


def compile_kernel(
    request: KernelRequest, target: Any, choices: Chosen = NOTHING
) -> tuple[KernelRecord, bytes]:
    """Compiles and checks a kernel. Returns its record and the bytes of its loadable library."""
    from composite.compiler import tvm as backend

    kernel = compile_object(request, target, choices=choices)
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "kernel.so"
        backend.link(kernel, path, runtime=native.library_path())
        made = record_of(request, kernel, target, tuned=bool(choices))
        made = with_accuracy(made, request, check(request, kernel, path))
        library = path.read_bytes()
    return replace(made, library_sha256=sha256(library)), library


def compile_object(
    request: KernelRequest, target: Any, name: str | None = None, choices: Chosen = NOTHING
) -> Any:
    """Compiles the kernel of a request (backend.Kernel); `name` is another one than kernel_name's.

    NotCovered when there cannot be one, Inexpandable when there is nothing to compile.
    """
    start = time.perf_counter()
    written = write(request, target, choices)
    kernel = written.generate(name or kernel_name(request, choices))
    seconds = time.perf_counter() - start
    logger.info("%s: kernel %s compiled in %.2f s", request.op, kernel.name, seconds)
    return kernel


def write(request: KernelRequest, target: Any, choices: Chosen = NOTHING) -> Any:
    """Writes the loops of a request's kernel (backend.Written); raises as `compile_object`."""
    from composite.compiler import tvm as backend

    return backend.write(
        _expansion(request),
        request.in_shapes,
        target=target,
        constants=request.constants,
        choices=choices,
    )


def _expansion(request: KernelRequest) -> Any:
    from composite.compiler import tvm as backend

    try:
        return expand(request, request.in_shapes)
    except tf.errors.OpError as error:
        kind = backend.NotCovered if native.is_not_yet(error) else Inexpandable
        raise kind(error.message) from error


def check(request: KernelRequest, kernel: Any, library: Path) -> verify.Accuracy:
    """Checks a linked kernel on the sizes of the call and on awkward ones; returns its error."""
    return oracle(request, kernel).check(library, kernel.name, kernel.packed)


def oracle(request: KernelRequest, kernel: Any) -> verify.Oracle:
    """What the kernels of a request are checked with; `kernel` is any of them."""
    dims = request.in_shapes
    names = shapes.symbols(dims)
    cases = [shapes.samples(names, request.hint, kernel.minimums, kernel.divisors)]
    if names:
        cases.append(shapes.odd_samples(names, kernel.minimums, kernel.divisors))
    return verify.Oracle(
        lambda exact: expand(request, exact),
        [shapes.substitute(dims, values) for values in cases],
    )


def with_accuracy(
    made: KernelRecord, request: KernelRequest, found: verify.Accuracy
) -> KernelRecord:
    """The record with what the check found."""
    exact = found.same_bits and is_exact(expand(request, request.in_shapes))
    return replace(made, error=found.error, error_unit=found.unit, exact=exact)


def record_of(
    request: KernelRequest, kernel: Any, target: Any, *, tuned: bool = False
) -> KernelRecord:
    """The kernel record that the runtime dispatches by: see the shape classes in docs."""
    packed = kernel.packed
    return KernelRecord(
        op=request.op,
        name=kernel.name,
        attrs=request.attrs,
        program=request.program,
        constants=request.constants,
        in_shapes=request.in_shapes,
        out_shapes=tuple(kernel.out_shapes),
        minimums=tuple(kernel.minimums),
        divisors=tuple(kernel.divisors),
        barriers=kernel.barriers,
        isa=target.isa,
        target=target.key,
        device="CPU",
        verdict="unmeasured",
        strategy=f"{kernel.strategy} (tuned)" if tuned else kernel.strategy,
        proof=str(kernel.proof),
        packed_sources=tuple(one.source for one in packed),
        packed_elements=tuple(one.elements for one in packed),
        packed_dtypes=tuple(tf.as_dtype(one.dtype) for one in packed),
    )
