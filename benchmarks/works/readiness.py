"""Something that is made ready once in a process, and how long that took: what `ready` measures.

`python -m benchmarks.works.readiness WAY CASE` measures one in this process. The ways are "ours"
and "XLA"; "files CASE FOLDER" writes a model for libraries that have an interpreter of their own.

Imports nothing of the package beforehand: that is measured, too.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MARK = "ready "
_BATCH = 1


@dataclass(frozen=True)
class Ready:
    """What was measured.

    Attributes:
        seconds: from the beginning until it was ready.
        detail: what else is worth knowing.
        megabytes: the peaks of resident memory, of this process and of each of the compiler's that
            does tasks. What these share is counted for each.
        processor: seconds of processors, of these processes and those that they have started; 0 if
            nobody counted them. Other work of the machine changes them less than `seconds`.
    """

    seconds: float
    detail: str = ""
    megabytes: float = 0.0
    processor: float = 0.0


def importing() -> Ready:
    """`import composite` and the names that an author needs, after TensorFlow."""
    start = time.perf_counter()
    import tensorflow as tf

    imported = time.perf_counter()
    import composite

    _ = composite.Composite, composite.accelerate
    detail = f"{tf.__name__} before it: {imported - start:.2f} s"
    return Ready(time.perf_counter() - imported, detail)


def decorating() -> Ready:
    """The first op of a process, and the import of the frontend with it."""
    importing()
    start = time.perf_counter()
    from examples.digits import ops

    return Ready(time.perf_counter() - start, ops.fused_fully_connected.op_name)


def _operands(*shapes: tuple[int, ...]) -> list[Any]:
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    return [tf.constant(random.standard_normal(shape) * 0.1, tf.float32) for shape in shapes]


def _op() -> Any:
    decorating()
    from examples.digits.ops import fused_fully_connected

    return fused_fully_connected


_SMALL = ((8, 16), (24, 16), (24,))
_LARGE = ((32, 512), (512, 512), (512,))


def first_call() -> Ready:
    """The first call of an op, which its expansion answers."""
    op, given = _op(), _operands(*_SMALL)
    start = time.perf_counter()
    op(*given, act="RELU")
    return Ready(time.perf_counter() - start)


def _until_kernel(call: Callable[[], Any]) -> Ready:
    """From a call until no kernel is left to be made."""
    import composite

    before = composite.stats()
    start, used = time.perf_counter(), processor()
    call()
    composite.wait()
    seconds, used = time.perf_counter() - start, processor() - used
    since = composite.stats() - before
    return Ready(seconds, _kernels(since), processor=used)


def _kernels(since: Any) -> str:
    """What was made, of what `composite.stats` has counted."""
    return f"{since['answered']} kernels, {since['compiles']} compiled"


def small_op() -> Ready:
    """From the first call to the kernel, with a compiler that has not been started."""
    op, given = _op(), _operands(*_SMALL)
    return _until_kernel(lambda: op(*given, act="RELU"))


def next_small_op() -> Ready:
    """The same for another op, with a compiler that is there."""
    op, given = _op(), _operands(*_SMALL)
    _until_kernel(lambda: op(*given, act="RELU"))
    return _until_kernel(lambda: op(*given, act="TANH"))


def _with_gradient(op: Any, given: list[Any]) -> None:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(given)
        y = op(*given, act="RELU")
    tape.gradient(y, given)


def gradient() -> Ready:
    """The kernels of a small op's gradient, when its own is there."""
    op, given = _op(), _operands(*_SMALL)
    _until_kernel(lambda: op(*given, act="RELU"))
    return _until_kernel(lambda: _with_gradient(op, given))


def dense_with_gradient() -> Ready:
    """A dense layer of 512 and its gradient, with a compiler that has not been started."""
    op, given = _op(), _operands(*_LARGE)
    return _until_kernel(lambda: _with_gradient(op, given))


def _model(name: str) -> tuple[Callable[[Any], Any], Any]:
    """A model's inference, and the inputs of a call."""
    import keras

    from benchmarks.works.models import ALSO_READY, MODELS, inputs

    keras.utils.set_random_seed(0)
    model = {**MODELS, **ALSO_READY}[name]()
    return lambda x: model(x, training=False), inputs(model, _BATCH)


def _accelerating(name: str) -> Callable[[], Ready]:
    def measured() -> Ready:
        import composite

        infer, given = _model(name)
        start, used = time.perf_counter(), processor()
        fast = composite.accelerate(infer, given)
        seconds, used = time.perf_counter() - start, processor() - used
        detail = f"{fast.report.verdict}; {composite.stats()['compiles']} compiled"
        return Ready(seconds, detail, processor=used)

    return measured


def generating() -> Ready:
    """GPT-2 of keras-hub writes 32 words, with regions, until no kernel is left to be made."""
    import numpy as np

    import composite
    from benchmarks.works.models import MODELS

    try:
        from keras_hub import models
    except ImportError as error:
        raise ImportError(f"keras-hub is not installed ({error}): `make bench` does so") from None
    writer = models.GPT2CausalLM(backbone=MODELS["GPT-2"](), preprocessor=None)
    writer.compile(jit_compile=False)
    length = 48
    words = {
        "token_ids": np.ones((_BATCH, length), np.int32),
        "padding_mask": (np.arange(length) < 16).astype(np.int32)[None],
    }

    def write() -> None:
        writer.generate(words, stop_token_ids=None)

    with composite.options(regions=True):
        before, start, used = composite.stats(), time.perf_counter(), processor()
        while True:
            requests = composite.stats()["requests"]
            write()
            composite.wait()
            if composite.stats()["requests"] == requests:
                break
        seconds, since = time.perf_counter() - start, composite.stats() - before
        used = processor() - used
    return Ready(seconds, _kernels(since), processor=used)


ACCELERATED = (
    "dense stack", "encoder", "BERT of 12 layers", "MobileNetV2", "ResNet50", "DenseNet121",
)  # fmt: skip

OURS: Mapping[str, Callable[[], Ready]] = {
    "import": importing,
    "decorate an op": decorating,
    "first call": first_call,
    "kernel of a small op": small_op,
    "kernel of the next small op": next_small_op,
    "kernels of its gradient": gradient,
    "kernels of a dense layer with gradient": dense_with_gradient,
    **{f"accelerate: {name}": _accelerating(name) for name in ACCELERATED},
    "GPT-2 generates": generating,
}
"""Ours, by case."""


def by_xla(case: str) -> Ready:
    """What XLA takes in the place of a case: the first call of a function less the second.

    KeyError for a case in which there is nothing to compile.
    """
    import tensorflow as tf

    if case in _BY_XLA:
        op, given = _op(), _operands(*_BY_XLA[case])
        call = tf.function(lambda x, w, b: op.python_function(x, w, b, "RELU"), jit_compile=True)
        arguments = tuple(given)
    else:
        infer, given = _model(case.removeprefix("accelerate: "))
        call, arguments = tf.function(infer, jit_compile=True), (given,)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        call(*arguments)
        seconds.append(time.perf_counter() - start)
    return Ready(seconds[0] - seconds[1])


_BY_XLA = {"kernel of a small op": _SMALL}


def has_peers(case: str) -> bool:
    """Whether XLA compiles what a case makes."""
    return case in _BY_XLA or case.startswith("accelerate: ")


def write_files(case: str, folder: Path) -> Ready:
    """Writes a model for others."""
    from benchmarks.sides.model_keras import hand_out
    from benchmarks.works.model_work import ModelProgram

    name = case.removeprefix("accelerate: ")
    start = time.perf_counter()
    hand_out(ModelProgram(name, _BATCH, folder), *_model(name))
    return Ready(time.perf_counter() - start)


def peak() -> float:
    """Megabytes of this process and of the compiler's, each at most."""
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for compiler in _compilers():
        status = Path(compiler, "status").read_text(encoding="ascii")
        found += float(status.partition("VmHWM:")[2].split()[0]) / 1024
    return found


def processor() -> float:
    """Seconds of processors, of this process and the compiler's, and of what they have started."""
    of_ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found = sum(one.ru_utime + one.ru_stime for one in of_ours)
    for compiler in _compilers():
        stat = Path(compiler, "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        found += sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
    return found


def _compilers() -> list[Path]:
    """What the system tells of the compiler's processes: a folder each."""
    client = sys.modules.get("composite.compiler_process.client")
    return [] if client is None else [Path(f"/proc/{n}") for n in client._client.numbers]


def main(way: str, case: str, *folder: str) -> None:
    """Measures, and prints what was found."""
    if way == "files":
        found = write_files(case, Path(*folder))
    else:
        found = OURS[case]() if way == "ours" else by_xla(case)
    print(MARK + json.dumps(asdict(found) | {"megabytes": peak()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
