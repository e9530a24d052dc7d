"""Make a bundle: the kernels of the works, their calls with sizes put in, and exact results.

It needs TensorFlow, TVM and NVRTC, and no GPU.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu import bundle, numbers
from benchmarks.gpu.works import GpuWork, Sizes

LEVELS = ("sm_80", "sm_90", "sm_100")
_SAMPLE = 1 << 16
"""Elements of an output that are compared, at most."""


def make(works: Sequence[GpuWork], folder: Path, levels: Sequence[str] = LEVELS) -> None:
    """Write a bundle of the works into a folder."""
    import tensorflow as tf

    from composite.compiler.tvm.cuda import nvrtc

    folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for work in works:
        kernel, source = _kernel(work, folder, levels)
        kernels.append(kernel)
        for level in levels if source else ():
            bundle.code_file(folder, work.key, level).write_bytes(nvrtc.cubin(source, level).data)
        if source and levels:
            text = nvrtc.ptx(source, levels[0])
            bundle.code_file(folder, work.key, "ptx").write_text(text, encoding="utf-8")
    bundle.save(kernels, {"TensorFlow": tf.__version__}, folder)


def _kernel(work: GpuWork, folder: Path, levels: Sequence[str]) -> tuple[bundle.Kernel, str]:
    """The kernel of a work, and its source."""
    from composite.compiler.tvm import NotCovered

    try:
        written = write(work)
    except NotCovered as why:
        return bundle.Kernel(work.name, work.key, "", (), (), str(why)), ""
    calls = []
    every = [(sizes, False) for sizes in work.checked] + [(work.timed, True)]
    for number, (sizes, timed) in enumerate(every):
        call, exact = _call(work, written, sizes, timed=timed)
        calls.append(call)
        bundle.save_exact(folder, work.key, number, exact)
    kernel = bundle.Kernel(work.name, work.key, written.strategy, tuple(levels), calls)
    return kernel, written.source


def write(work: GpuWork) -> Any:
    """The CUDA source of a work, and the plan of its launches."""
    import tensorflow as tf

    from composite.compiler.tvm.cuda.build import write_cuda
    from composite.compiler.tvm.target import CudaTarget

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
    target = CudaTarget.level(LEVELS[0], tensor_float_32=work.tensor_float_32)
    return write_cuda(library, work.shapes, target=target, name=work.key)


def _dtype(array: Any, work: GpuWork) -> str:
    return work.dtype if array.dtype.kind == "f" else str(array.dtype)


def _call(work: GpuWork, written: Any, sizes: Sizes, *, timed: bool) -> tuple[bundle.Call, Any]:
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
    symbols = sorted(sizes, key=lambda name: int(name[1:]))
    steps = [
        bundle.Step(
            one.function,
            dims.ceildiv(dims.evaluate(one.work, sizes, int), one.share),
            one.together,
            one.threads,
            [sizes[symbols[a.index]] if a.kind == "size" else str(a) for a in one.arguments],
            one.dynamic,
            one.resident,
        )
        for one in written.plan.launches
    ]
    outputs, exact = [], []
    for text, result in zip(written.out_shapes, results, strict=True):
        shape = [dims.evaluate(d, sizes, int) for d in text.split(",") if d]
        value = np.asarray(result)
        outputs.append((shape, work.dtype if value.dtype.kind == "f" else str(value.dtype)))
        exact.append(_sample(value.reshape(-1)))
    spaces = [dims.evaluate(size, sizes, int) for size in written.plan.workspaces]
    return bundle.Call(dict(sizes), outputs, spaces, steps, checksum, timed), exact


def _sample(values: Any) -> tuple[Any, Any]:
    """Places and values of some elements, of all if they are few."""
    places = np.arange(values.size)
    if values.size > _SAMPLE:
        places = np.sort(np.random.default_rng(0).choice(values.size, _SAMPLE, replace=False))
    return places, values[places]
