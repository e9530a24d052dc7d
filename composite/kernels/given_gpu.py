"""Kernels for GPUs that an author provides: machine code, and its launches.

They are checked, measured and installed as our own kernels are, on a GPU of their level.

Not for: kernels for the CPU (given.py); what a launch is (launches.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm.target import CudaTarget
from composite.kernels import cache, gpu, launches, produce, shapes, verdicts
from composite.kernels.given import Given, Refused, minimums, output_shapes, refusing
from composite.kernels.key import sha256
from composite.measuring.decisions import Decision
from composite.ops import call

# Sizes of varying dims, by how many vary: they reveal a grid that ends too early.
_SIZES = {1: 2053, 2: 131}
_LEAST = 31
_SUFFIXES = (".cubin", ".ptx")


def give(
    request: KernelRequest,
    source: Any,
    stated: Sequence[launches.Launch],
    names: Mapping[str, str],
) -> Given:
    """Checks a kernel for the calls of a request on a GPU, installs and measures it.

    Args:
        request: the calls, and the level of the GPU.
        source: the path of a cubin or of PTX.
        stated: the launches.
        names: the names of tensors and dims in the launches, see `launches.fields`.

    Raises:
        Refused: the kernel computes something else than the body or cannot be launched so, or
            this machine has no GPU of its level.
        TypeError: `source` is not a path of such a file.
        FileNotFoundError: the file does not exist.
    """
    if not isinstance(source, str | Path) or Path(source).suffix not in _SUFFIXES:
        raise TypeError(
            f"{source!r} is no kernel for a GPU: give the path of a cubin or of PTX ("
            f"{', '.join(_SUFFIXES)})"
        )
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there")
    if not stated:
        raise Refused("launches= says how it is launched: a list of composite.Launch")
    image = path.read_bytes()
    with call.eager_mode(), refusing():
        record = _record(request, path, image, stated, names)
        found = _checked(request, record, image)
        least = minimums(request, lambda oracle: gpu.check(oracle, record, image))
        record = produce.with_accuracy(replace(record, minimums=least), request, found)
        stored = cache.open_default().store(sha256(image), b"", image)
        return Given(record, _measured(record, request, stored), {}, image)


def _measured(record: KernelRecord, request: KernelRequest, stored: Path) -> Decision:
    try:
        return verdicts.measured_library(record, request, stored)
    except tf.errors.InvalidArgumentError as error:  # TensorFlow cannot place nodes on it
        raise Refused(f"its body does not run on {request.device}: {error.message}") from error


def _record(
    request: KernelRequest,
    path: Path,
    image: bytes,
    stated: Sequence[launches.Launch],
    names: Mapping[str, str],
) -> KernelRecord:
    try:
        plan = launches.fields(stated, names)
        target = CudaTarget.of_device(request.device)
    except ValueError as wrong:
        raise Refused(str(wrong)) from wrong
    outputs = output_shapes(request)
    pointers = (("in", len(request.in_shapes)), ("out", len(outputs)))
    fields: dict[str, Any] = {
        **plan,
        # The code may load any of them in vectors; TensorFlow aligns all its allocations so.
        "aligned": tuple(f"{kind}{i}" for kind, count in pointers for i in range(count)),
    }
    return KernelRecord(
        op=request.op,
        name=f"{request.op}_{sha256(image + repr(stated).encode())[:16]}",
        attrs=request.attrs,
        program=request.program,
        in_shapes=request.in_shapes,
        out_shapes=tuple(outputs),
        minimums=(0,) * len(shapes.symbols(request.in_shapes)),
        barriers=False,
        isa=target.isa,
        target=target.key,
        device=request.device,
        verdict="kernel",
        strategy=f"yours: {', '.join(one.function for one in stated)}, {path.name}",
        proof="not looked at",
        **fields,
    )


def _checked(request: KernelRequest, record: KernelRecord, image: bytes) -> Any:
    size = _SIZES.get(len(request.hint), _LEAST)
    larger = replace(request, hint=(size,) * len(request.hint))
    try:
        standard = produce.oracle(larger, record.minimums, arithmetic=gpu.ARITHMETIC)
        return gpu.check(standard, record, image)
    except gpu.Missing as missing:
        raise Refused(
            f"it cannot be checked on this machine ({missing}): give it where there is a GPU of "
            f"{request.device}"
        ) from missing
