"""What it costs to decorate and register an op, after the first (which imports the frontend)."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, emit
from benchmarks.timing import Spread

OPS = 21

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
    """Milliseconds an op, the first left out."""
    text = "import time\nimport tensorflow as tf\nfrom composite import Composite\n"
    text += "MOMENTS = [time.perf_counter()]\n" + "".join(_OP.format(i=i) for i in range(OPS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "decoration_ops.py")
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("decoration_ops", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        time.sleep(0)  # the import below is what is measured
        spec.loader.exec_module(module)
        milliseconds = np.diff(module.MOMENTS) * 1e3
    yield Row.of(
        "decorate and register an op",
        Spread.of(milliseconds[1:]),
        "ms",
        at_most=50,
        detail=f"slowest {milliseconds[1:].max():.1f} ms, the very first {milliseconds[0]:.0f} ms",
    )


if __name__ == "__main__":
    emit(rows())
