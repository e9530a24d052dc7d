"""Make a bundle: the kernels of the works, their calls with sizes put in, and exact results.

It needs TensorFlow, TVM and NVRTC, and no GPU.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu import bundle, numbers
from benchmarks.gpu.works import GpuWork, Sizes
from composite.compiler.tvm.target import CudaTarget

LEVELS = ("sm_80", "sm_90", "sm_100")
_SAMPLE = 1 << 16
"""Elements of an output that are compared, at most."""


def machine_code(source: str, target: CudaTarget) -> bytes:
    """What NVRTC makes of a source."""
    from composite.compiler.tvm.cuda import nvrtc

    return nvrtc.image(source, target.isa, is_portable=target.is_portable)


def make(
    works: Sequence[GpuWork],
    folder: Path,
    levels: Sequence[str] = LEVELS,
    image: Callable[[str, CudaTarget], bytes] = machine_code,
) -> None:
    """Write a bundle of the works into a folder; ``image`` gives what the driver loads.

    Each level has kernels of its own; PTX of the lowest is for GPUs of all others.
    """
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    targets = {level: CudaTarget.level(level) for level in levels}
    targets[bundle.PTX] = replace(targets[levels[0]], is_portable=True)
    found: dict[str, list[bundle.Kernel]] = {level: [] for level in targets}
    for work in works:
        of_calls: list[_Facts] = []
        for level, target in targets.items():
            kernel, source = _kernel(work, target, folder, of_calls)
            found[level].append(kernel)
            if source:
                code = image(source, target)
                bundle.code_file(folder, work.key, level).write_bytes(code)
    for level, kernels in found.items():
        bundle.save(kernels, {"TensorFlow": tf.__version__}, folder, level)


class _Facts(NamedTuple):
    """What is the same of a call for all levels: its outputs and the checksum of its inputs."""

    outputs: list[tuple[list[int], str]]
    checksum: int


def _kernel(
    work: GpuWork, target: CudaTarget, folder: Path, facts: list[_Facts]
) -> tuple[bundle.Kernel, str]:
    """The kernel of a work, and its source; the first one adds the facts of its calls."""
    from composite.compiler.tvm import NotCovered

    try:
        written = write(work, target)
    except NotCovered as why:
        return bundle.Kernel(work.name, work.key, "", (), str(why)), ""
    every = [(sizes, False) for sizes in work.checked] + [(work.timed, True)]
    if not facts:
        for number, (sizes, _) in enumerate(every):
            own, exact = _facts(work, written, sizes)
            facts.append(own)
            bundle.save_exact(folder, work.key, number, exact)
    calls = [
        _call(written, sizes, own, timed=timed)
        for (sizes, timed), own in zip(every, facts, strict=True)
    ]
    return bundle.Kernel(work.name, work.key, written.strategy, calls), written.source


def write(work: GpuWork, target: CudaTarget) -> Any:
    """The CUDA source of a work, and the plan of its launches."""
    import tensorflow as tf

    from composite.compiler.tvm.cuda.build import write_cuda

    if work.library is not None:
        library = work.library()
    else:
        some = work.inputs(work.checked[0] if work.checked else work.timed)
        specs = [
            tf.TensorSpec([d if isinstance(d, int) else None for d in shape], _dtype(array, work))
            for shape, array in zip(work.shapes, some, strict=True)
        ]
        concrete = tf.function(work.function, autograph=False).get_concrete_function(*specs)
        definition = concrete.graph.as_graph_def().library
        library = type(definition)()
        library.function.add().CopyFrom(concrete.function_def)
        library.function.extend(definition.function)
    own = replace(target, tensor_float_32=work.tensor_float_32)
    return write_cuda(library, work.shapes, target=own, name=work.key)


def _dtype(array: Any, work: GpuWork) -> str:
    return work.dtype if array.dtype.kind == "f" else str(array.dtype)


def _facts(work: GpuWork, written: Any, sizes: Sizes) -> tuple[_Facts, Any]:
    """What is known of a call, and samples of its exact results."""
    import tensorflow as tf

    from composite.compiler.tvm.ir import dims

    drawn = work.inputs(sizes)
    inputs = [numbers.stored(x, work.dtype) for x in drawn]
    types = [_dtype(x, work) for x in drawn]
    checksum = 0
    for array in inputs:
        checksum = zlib.crc32(array.tobytes(), checksum)
    wide = [numbers.widened(x, t) for x, t in zip(inputs, types, strict=True)]
    results = tf.nest.flatten(work.function(*map(tf.constant, wide)))
    outputs, exact = [], []
    for text, result in zip(written.out_shapes, results, strict=True):
        shape = [dims.evaluate(d, sizes, int) for d in text.split(",") if d]
        value = np.asarray(result)
        outputs.append((shape, work.dtype if value.dtype.kind == "f" else str(value.dtype)))
        exact.append(_sample(value.reshape(-1)))
    return _Facts(outputs, checksum), exact


def _call(written: Any, sizes: Sizes, facts: _Facts, *, timed: bool) -> bundle.Call:
    """A call, whose launches have the sizes put in."""
    from composite.compiler.tvm.ir import dims

    symbols = sorted(sizes, key=lambda name: int(name[1:]))
    steps = [
        bundle.Step(
            one.function,
            dims.ceildiv(dims.evaluate(one.work, sizes, int), one.share),
            one.threads,
            [sizes[symbols[a.index]] if a.kind == "size" else str(a) for a in one.arguments],
            one.dynamic,
            one.resident,
        )
        for one in written.plan.launches
    ]
    spaces = [dims.evaluate(size, sizes, int) for size in written.plan.workspaces]
    return bundle.Call(dict(sizes), facts.outputs, spaces, steps, facts.checksum, timed)


def _sample(values: Any) -> tuple[Any, Any]:
    """Places and values of some elements, of all if they are few."""
    places = np.arange(values.size)
    if values.size > _SAMPLE:
        places = np.sort(np.random.default_rng(0).choice(values.size, _SAMPLE, replace=False))
    return places, values[places]
