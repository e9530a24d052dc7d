"""What it costs to decorate and register an op, after the first (which imports the frontend)."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import long_bodies
from benchmarks.rows import Row, emit
from benchmarks.timing import Spread

OPS = 21
LONG_OPS = 6

_OP = '''
@Composite(
    "DecorationBench{i}",
    inputs=["x: T", "w: T", "bias: T"],
    attrs=['act: {{"", "RELU", "RELU6", "TANH"}} = ""'],
    derived_attrs=["T: {{float, double, half, bfloat16}}"],
    outputs=["o: T"],
)
def decoration_bench_{i}(x, w, bias, act):
    """Number {i}: equal programs would share work."""
    o = tf.raw_ops.BiasAdd(value=tf.raw_ops.MatMul(a=x, b=w, transpose_b=True), bias=bias)
    if act == "RELU":
        return tf.raw_ops.Relu(features=o)
    elif act == "RELU6":
        return tf.raw_ops.Relu6(features=o)
    elif act == "TANH":
        return tf.raw_ops.Tanh(x=o) * {i}.5
    return o


MOMENTS.append(time.perf_counter())
'''


def rows() -> Iterator[Row]:
    """Milliseconds an op, the first left out; and of processor time, an op of 200 lines."""
    text = "import time\nimport tensorflow as tf\nfrom composite import Composite\n"
    text += "MOMENTS = [time.perf_counter()]\n" + "".join(_OP.format(i=i) for i in range(OPS))
    with tempfile.TemporaryDirectory() as folder:
        milliseconds = np.diff(_imported(Path(folder, "decoration_ops.py"), text).MOMENTS) * 1e3
        yield Row.of(
            "decorate and register an op",
            Spread.of(milliseconds[1:]),
            "ms",
            at_most=50,
            detail=f"slowest {milliseconds[1:].max():.1f} ms, the first {milliseconds[0]:.0f} ms",
        )
        yield from _long_bodies(Path(folder))


def _long_bodies(folder: Path) -> Iterator[Row]:
    _imported(folder / "warm_up.py", long_bodies.WARM_UP)
    times: dict[str, list[float]] = {}
    for number in range(LONG_OPS):
        for index, (kind, text) in enumerate(long_bodies.texts(number).items()):
            start = time.process_time()
            _imported(folder / f"long_ops_{index}_{number}.py", text)
            times.setdefault(kind, []).append((time.process_time() - start) * 1e3)
    for kind, (first, *others) in times.items():
        yield Row.of(
            f"decorate {long_bodies.LINES} lines of {kind}",
            Spread.of(np.array(others)),
            "ms",
            at_most=300,
            detail=f"processor time; the first of its kind in the process {first:.0f} ms",
        )


def _imported(path: Path, text: str) -> Any:
    """Import a module of this text, which is what is measured."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    emit(rows())
