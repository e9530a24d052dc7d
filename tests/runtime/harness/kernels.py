"""Kernels for kernels_test.cc: `python -m tests.runtime.harness.kernels FOLDER [LEVEL]`.

LEVEL is a CPU level, by default this machine's. Writes kernels.so, whose one foreign symbol the
harness has, and calls.txt: for each kernel a line `name barriers inputs outputs`, and for each
array `rank dims... values...`. The outputs are those of TensorFlow's ops.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from composite.aot import stated_calls
from composite.compiler import tvm as backend
from composite.kernels import produce
from examples.lstm.ops import gru, lstm

BATCH, STEPS, UNITS, SIZE = 4, 16, 64, 128


@composite.Composite(
    "HarnessDense", inputs=["x: T", "w: T"], derived_attrs=["T: {float}"], outputs=["y: T"]
)
def dense(x: Any, w: Any) -> Any:
    return tf.nn.relu(x @ w)


@composite.Composite("HarnessGelu", inputs=["x: T"], derived_attrs=["T: {float}"], outputs=["y: T"])
def gelu(x: Any) -> Any:
    return tf.nn.gelu(x)


def _cell(gates: int, states: int, bias: tuple[int, ...]) -> list[tuple[int, ...]]:
    weights = (UNITS, gates * UNITS)
    return [(BATCH, STEPS, UNITS), *[(BATCH, UNITS)] * states, weights, weights, bias]


# name -> op, shapes of its inputs, which of their dims vary, and what else it is called with
CALLS: dict[str, tuple[Any, list[tuple[int, ...]], dict[int, tuple[Any, ...]], dict[str, Any]]] = {
    "lstm": (lstm, _cell(4, 2, (4 * UNITS,)), {}, {"mask": [], "return_sequences": True}),
    "lstm_of_any_size": (
        lstm,
        _cell(4, 2, (4 * UNITS,)),
        {0: ("batch", "steps", UNITS), 1: ("batch", UNITS), 2: ("batch", UNITS)},
        {"mask": []},
    ),
    "gru": (gru, _cell(3, 1, (2, 3 * UNITS)), {}, {"mask": []}),
    "dense": (dense, [(SIZE, SIZE), (SIZE, SIZE)], {}, {}),
    "gelu": (gelu, [(SIZE, 4 * SIZE)], {}, {}),
}


def _kernel(name: str, isa: str) -> Any:
    op, shapes, varying, others = CALLS[name]
    names = [arg.name for arg in op.schema.inputs]
    specs = {names[i]: ("float32", varying.get(i, shape)) for i, shape in enumerate(shapes)}
    # Two cores, whatever this machine has: for one there would be no barrier.
    target = backend.Target.of(isa, 2)
    return produce.compile_object(stated_calls.requests(op, specs | others)[0], target, name)


def _text(array: Any) -> str:
    array = np.asarray(array, np.float32)
    values = (f"{value:.9g}" for value in array.ravel())
    return " ".join([str(array.ndim), *map(str, array.shape), *values])


def _call(name: str, barriers: bool) -> str:
    op, shapes, _, others = CALLS[name]
    random = np.random.default_rng(1)
    inputs = [random.standard_normal(s).astype(np.float32) / s[-1] ** 0.5 for s in shapes]
    with composite.options(backend="tf"):
        outputs = tf.nest.flatten(op(*inputs, **others))
    head = f"{name} {int(barriers)} {len(inputs)} {len(outputs)}"
    return "\n".join([head, *map(_text, [*inputs, *outputs]), ""])


def main(folder: Path, isa: str) -> None:
    """Writes both files."""
    folder.mkdir(parents=True, exist_ok=True)
    kernels = {name: _kernel(name, isa) for name in CALLS}
    backend.link(kernels.values(), folder / "kernels.so", runtime=None)
    calls = "".join(_call(name, kernel.barriers) for name, kernel in kernels.items())
    (folder / "calls.txt").write_text(calls)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(sys.argv[2:] or [backend.Target.host().isa]))
