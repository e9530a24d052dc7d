"""From a request of the runtime to an installed kernel with a verdict.

The pipeline in plain lines: expand the shape class, compile, check, keep in the cache, install,
then its verdict (`verdicts`). A kernel from the cache was checked when it was made.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding import native
from composite.binding.log import logger
from composite.binding.records import NodeDef, attr_value, record, serialize
from composite.compiler.tvm.choices import Chosen
from composite.kernels import chosen, shapes, verify
from composite.kernels import key as keys
from composite.kernels.cache import Cache
from composite.kernels.chosen import NOTHING
from composite.kernels.exact import is_exact
from composite.kernels.expansions import constants_of, expand
from composite.kernels.verdicts import verdict

_PRIVATE = ("_must", "_hint")  # of a request, no part of a kernel's record


class Outcome(NamedTuple):
    """What became of a request: "kernel", "expansion" (measured slower), and why."""

    status: str
    reason: str


class Inexpandable(Exception):  # noqa: N818 - the caller's error, not ours
    """The body does not accept these shapes or attributes; the message has the author's place."""


class Stopped(Exception):  # noqa: N818 - not an error
    """The process ends: what is left of a request is not worth waiting for."""


def produce(request: NodeDef, cache: Cache, stopping: Callable[[], bool]) -> Outcome:
    """Serves one request. Raises NotCovered, Inexpandable, verify.Mismatch, what the compiler does.

    `stopping()` is asked between the steps; Stopped is raised when it says so.
    """
    from composite.compiler import tvm as backend

    target = backend.Target.host()
    choices = chosen.choices_for(
        request,
        target,
        lambda given: write(request, target, given),
        chosen.databases(),
        known=lambda given: cache.load(keys.entry_key(request, target.key, given)) is not None,
    )
    key = keys.entry_key(request, target.key, choices)
    entry = cache.load(key)
    if entry is None:
        made, library = compile_kernel(request, target, choices)
        path = cache.store(key, serialize(made), library)
    else:
        made, path = NodeDef.FromString(entry[0]), entry[1]
        logger.info("%s: kernel %s is in the cache", request.op, made.name)
    made.attr["_library"].s = str(path).encode()
    if stopping():
        raise Stopped
    native.call("composite_install", made)
    decision = verdict(cache, key, made, request, stopping)
    if decision.kernel_wins:
        return Outcome("kernel", "")
    times = decision.times
    return Outcome(
        "expansion",
        f"measured slower: {times.kernel_us:.1f} us against {times.expansion_us:.1f} us",
    )


def kernel_name(request: NodeDef, choices: Chosen = NOTHING) -> str:
    """The C name of a request's kernel: deterministic, and different for different ones."""
    return f"{request.op}_{keys.entry_key(request, '', choices)[:16]}"


def compile_kernel(
    request: NodeDef, target: Any, choices: Chosen = NOTHING
) -> tuple[NodeDef, bytes]:
    """Compiles and checks a kernel. Returns its record and the bytes of its loadable library."""
    from composite.compiler import tvm as backend

    kernel = compile_object(request, target, choices=choices)
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "kernel.so"
        backend.link(kernel, path, runtime=native.library_path())
        made = record_of(request, kernel, target, tuned=bool(choices))
        add_accuracy(made, request, check(request, kernel, path))
        library = path.read_bytes()
    made.attr["_library_sha256"].s = keys.sha256(library).encode()
    return made, library


def compile_object(
    request: NodeDef, target: Any, name: str | None = None, choices: Chosen = NOTHING
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


def write(request: NodeDef, target: Any, choices: Chosen = NOTHING) -> Any:
    """Writes the loops of a request's kernel (backend.Written); raises as `compile_object`."""
    from composite.compiler import tvm as backend

    dims = shapes.from_record(request)
    try:
        library = expand(request, dims)
    except tf.errors.OpError as error:
        kind = backend.NotCovered if native.is_not_yet(error) else Inexpandable
        raise kind(error.message) from error
    return backend.write(
        library, dims, target=target, constants=constants_of(request), choices=choices
    )


def check(request: NodeDef, kernel: Any, library: Path) -> verify.Accuracy:
    """Checks a linked kernel on the sizes of the call and on awkward ones; returns its error."""
    return oracle(request, kernel).check(library, kernel.name, kernel.packed)


def oracle(request: NodeDef, kernel: Any) -> verify.Oracle:
    """What the kernels of a request are checked with; `kernel` is any of them."""
    dims = shapes.from_record(request)
    names = shapes.symbols(dims)
    cases = [shapes.samples(names, shapes.hints(request), kernel.minimums, kernel.divisors)]
    if names:
        cases.append(shapes.odd_samples(names, kernel.minimums, kernel.divisors))
    return verify.Oracle(
        lambda exact: expand(request, exact),
        [shapes.substitute(dims, values) for values in cases],
    )


def add_accuracy(made: NodeDef, request: NodeDef, found: verify.Accuracy) -> None:
    """Writes what the check found into a record."""
    made.attr["_error"].f = found.error
    made.attr["_error_unit"].s = found.unit.encode()
    expansion = expand(request, shapes.from_record(request))
    made.attr["_exact"].b = found.same_bits and is_exact(expansion)


def record_of(request: NodeDef, kernel: Any, target: Any, *, tuned: bool = False) -> NodeDef:
    """The kernel record that the runtime dispatches by: see the shape classes in docs."""
    made = record(
        op=request.op,
        name=kernel.name,
        _out_shapes=list(kernel.out_shapes),
        _minimums=list(kernel.minimums),
        _divisors=list(kernel.divisors),
        _barriers=kernel.barriers,
        _isa=target.isa,
        _target=target.key,
        _device="CPU",
        _verdict="unmeasured",
        _strategy=f"{kernel.strategy} (tuned)" if tuned else kernel.strategy,
    )
    for name, value in request.attr.items():
        if name not in _PRIVATE:
            made.attr[name].CopyFrom(value)
    if kernel.packed:
        made.attr["_packed_sources"].CopyFrom(attr_value([p.source for p in kernel.packed]))
        made.attr["_packed_elements"].CopyFrom(attr_value([p.elements for p in kernel.packed]))
        dtypes = [tf.as_dtype(p.dtype) for p in kernel.packed]
        made.attr["_packed_dtypes"].CopyFrom(attr_value(dtypes))
    return made
