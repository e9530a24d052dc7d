"""From a request of the runtime to an installed kernel with a verdict.

The pipeline in plain lines: expand the shape class, compile, check, keep in the cache, install,
measure, install again with the verdict. A kernel from the cache was checked when it was made.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite import call, functions, native
from composite.jit import key as keys
from composite.jit import shapes, verify
from composite.jit.cache import Cache
from composite.jit.measure import Times, measure
from composite.log import logger
from composite.records import (
    CONSTANTS,
    PROGRAM,
    NodeDef,
    attr_value,
    call_record,
    record,
    serialize,
)

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
    key = keys.entry_key(request, target.key)
    entry = cache.load(key)
    if entry is None:
        made, library = compile_kernel(request, target)
        path = cache.store(key, serialize(made), library)
    else:
        made, path = NodeDef.FromString(entry[0]), entry[1]
        logger.info("%s: kernel %s is in the cache", request.op, made.name)
    made.attr["_library"].s = str(path).encode()
    if stopping():
        raise Stopped
    native.call("composite_install", made)
    times = _times(cache, key, made, request)
    install_verdict(made, times)
    if times.kernel_wins:
        return Outcome("kernel", "")
    return Outcome(
        "expansion",
        f"measured slower: {times.kernel_us:.1f} us against {times.expansion_us:.1f} us",
    )


def install_verdict(made: NodeDef, times: Times) -> None:
    """Installs a record again, with what was measured."""
    made.attr["_verdict"].s = b"kernel" if times.kernel_wins else b"expansion"
    made.attr["_kernel_us"].f = times.kernel_us
    made.attr["_expansion_us"].f = times.expansion_us
    native.call("composite_install", made)


def expand(request: NodeDef, dims: Sequence[shapes.Dims]) -> Any:
    """The expansion (FunctionDefLibrary) of a request's call; symbols are unknown dims."""
    asked = call_record(request.op, request.attr)
    known = [tf.TensorShape([d if isinstance(d, int) else None for d in s]) for s in dims]
    asked.attr["_in_shapes"].CopyFrom(attr_value(known))
    return FunctionDefLibrary.FromString(native.call("composite_expand", asked))


def constants_of(request: NodeDef) -> tuple[int, ...]:
    """The inputs of a request that never change."""
    return tuple(request.attr[CONSTANTS].list.i) if CONSTANTS in request.attr else ()


def kernel_name(request: NodeDef) -> str:
    """The C name of a request's kernel: deterministic, and different for different requests."""
    return f"{request.op}_{keys.entry_key(request, '')[:16]}"


def compile_kernel(request: NodeDef, target: Any) -> tuple[NodeDef, bytes]:
    """Compiles and checks a kernel. Returns its record and the bytes of its loadable library."""
    from composite.compiler import tvm as backend

    kernel = compile_object(request, target)
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "kernel.so"
        backend.link(kernel, path, runtime=native.library_path())
        made = record_of(request, kernel, target)
        made.attr["_max_error"].s = check(request, kernel, path).encode()
        library = path.read_bytes()
    made.attr["_library_sha256"].s = keys.sha256(library).encode()
    return made, library


def compile_object(request: NodeDef, target: Any, name: str | None = None) -> Any:
    """Compiles the kernel of a request (backend.Kernel); `name` is another one than kernel_name's.

    NotCovered when there cannot be one, Inexpandable when there is nothing to compile.
    """
    from composite.compiler import tvm as backend

    dims = shapes.from_record(request)
    try:
        library = expand(request, dims)
    except tf.errors.OpError as error:
        kind = backend.NotCovered if native.is_not_yet(error) else Inexpandable
        raise kind(error.message) from error
    start = time.perf_counter()
    kernel = backend.compile(
        library,
        dims,
        target=target,
        name=name or kernel_name(request),
        constants=constants_of(request),
    )
    seconds = time.perf_counter() - start
    logger.info("%s: kernel %s compiled in %.2f s", request.op, kernel.name, seconds)
    return kernel


def check(request: NodeDef, kernel: Any, library: Path) -> str:
    """Checks a linked kernel on the sizes of the call and on awkward ones; returns its error."""
    dims = shapes.from_record(request)
    names = shapes.symbols(dims)
    hints = list(request.attr["_hint"].list.i) if "_hint" in request.attr else []
    cases = [shapes.samples(names, hints, kernel.minimums, kernel.divisors)]
    if names:
        cases.append(shapes.odd_samples(names, kernel.minimums, kernel.divisors))
    return verify.check(
        library,
        kernel.name,
        lambda exact: expand(request, exact),
        [shapes.substitute(dims, values) for values in cases],
        kernel.packed,
    )


def record_of(request: NodeDef, kernel: Any, target: Any) -> NodeDef:
    """The kernel record that the runtime dispatches by: see the shape classes in docs."""
    made = record(
        op=request.op,
        name=kernel.name,
        _out_shapes=list(kernel.out_shapes),
        _minimums=list(kernel.minimums),
        _divisors=list(kernel.divisors),
        _isa=target.isa,
        _target=target.key,
        _device="CPU",
        _verdict="unmeasured",
        _strategy=kernel.strategy,
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


def _times(cache: Cache, key: str, made: NodeDef, request: NodeDef) -> Times:
    machine = keys.machine()
    stored = cache.load_timings(key, machine)
    if stored is not None:
        return Times(**json.loads(stored))
    times = time_kernel(made, request)
    cache.store_timings(key, machine, json.dumps(times._asdict()).encode())
    logger.info(
        "%s: kernel %s takes %.1f us, the expansion %.1f us",
        request.op, made.name, times.kernel_us, times.expansion_us,
    )  # fmt: skip
    return times


def time_kernel(made: NodeDef, request: NodeDef) -> Times:
    """Measures an installed kernel on the sizes of the call that asked for it."""
    dims = shapes.from_record(request)
    hints = list(request.attr["_hint"].list.i) if "_hint" in request.attr else []
    values = shapes.samples(
        shapes.symbols(dims),
        hints,
        list(made.attr["_minimums"].list.i),
        list(made.attr["_divisors"].list.i),
    )
    exact = shapes.substitute(dims, values)
    dtypes = functions.body(expand(request, exact)).input_dtypes
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in zip(exact, dtypes, strict=True)]
    stamps = {PROGRAM: request.attr[PROGRAM]} if PROGRAM in request.attr else {}
    return measure(request.op, _keywords(request), stamps, specs, constants_of(request))


def time_library(made: NodeDef, request: NodeDef, library: Path) -> Times:
    """Measures a linked kernel that is not installed yet; this process has it from then on."""
    trial = NodeDef()
    trial.CopyFrom(made)
    trial.attr["_library"].s = str(library).encode()
    trial.attr["_library_sha256"].s = keys.sha256(library.read_bytes()).encode()
    native.call("composite_install", trial)
    times = time_kernel(trial, request)
    # Left unmeasured, it would stand in the way of an equal one that served calls before.
    install_verdict(trial, times)
    return times


def _keywords(request: NodeDef) -> Callable[[Sequence[Any]], dict[str, Any]]:
    definition = call.op_def(request.op)
    attrs = {name: value for name, value in request.attr.items() if not name.startswith("_")}
    derived = call.inferred(definition)
    return lambda inputs: call.keywords(definition, derived, attrs, inputs)
