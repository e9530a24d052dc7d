"""A library for several CPU levels beside one for exactly this CPU: what it costs to be portable.

`composite.build` makes kernels for levels of the psABI only. The other library is made for the
model that LLVM takes this CPU for, which may order instructions otherwise and use more of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

import composite
from benchmarks import ops
from benchmarks.rows import Row, emit
from benchmarks.timing import interleave
from composite.aot.build_options import build_targets
from composite.compiler.tvm.target import Target

LEVELS, NATIVE = "levels", "native"
MOST = 1.1
DEPTH = 4  # nodes of a function, so that its call counts little
ROWS, WIDTH = 96, 512
BATCH, STEPS, UNITS = 8, 50, 256
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "dense": {"x": (ROWS, WIDTH), "w": (WIDTH, WIDTH), "b": (WIDTH,)},
    "lstm": {
        "x": (BATCH, STEPS, UNITS),
        "kernel": (UNITS, 4 * UNITS),
        "recurrent": (UNITS, 4 * UNITS),
        "bias": (4 * UNITS,),
    },
}
"""The inputs of each op, which gives one of the first one's shape; the others are constants."""


def dense(x: Any, w: Any, b: Any) -> Any:
    """A dense layer with ReLU."""
    return tf.nn.relu(tf.matmul(x, w) + b)


_BODIES = {"dense": dense, "lstm": ops.lstm.python_function}


class _ThisCpu(Target):
    """One model of CPU, which LLVM takes for a whole one: this machine may show less of it."""

    def tvm(self) -> dict[str, object]:
        described = super().tvm()
        return described if self.lanes == 16 else described | {"mattr": ["-avx512f"]}


def this_cpu() -> Target:
    """The target for exactly this CPU."""
    from tvm.target import codegen

    return _ThisCpu(**{**vars(Target.host()), "mcpu": codegen.llvm_get_system_cpu()})


def declared(name: str) -> list[Any]:
    """The ops, under names of their own: a process has one best kernel for an op and its shapes."""
    return [
        composite.Composite(
            f"Bench{name.title()}{kind.title()}",
            inputs=[f"{arg}: float" for arg in SHAPES[kind]],
            outputs=["y: float"],
        )(body)
        for kind, body in _BODIES.items()
    ]


def build(name: str, folder: Path, levels: list[str]) -> Path:
    """Writes a library of the ops, for levels or, without any, for this machine's target."""
    calls = {}
    for kind, shapes in SHAPES.items():
        first, *weights = shapes
        calls[kind] = [
            {first: ("float32", shapes[first])}
            | {weight: ("float32", shapes[weight], "constant") for weight in weights}
        ]
    return composite.build(
        declared(name), folder / name, name=name, signatures=calls, targets=levels
    )


def compare() -> None:
    """Build both libraries, and have a process time them that loads both."""
    host = Target.host()
    levels = [level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if level <= host.isa]
    with tempfile.TemporaryDirectory(prefix="composite-bench-") as folder:
        libraries = [build(LEVELS, Path(folder), [one.target.isa for one in build_targets(levels)])]
        with mock.patch.object(Target, "host", return_value=this_cpu()):
            libraries.append(build(NATIVE, Path(folder), []))
        command = [sys.executable, "-m", "benchmarks.subjects.levels", *map(str, libraries)]
        settings = {"COMPOSITE_JIT": "0", "COMPOSITE_BACKEND": "tvm"}
        subprocess.run(command, env=os.environ | settings, check=True)


def served(levels: Path, native: Path) -> Iterator[Row]:
    """The rows of two libraries, in a process that has nothing else."""
    for kind, shapes in SHAPES.items():
        ways = {
            name: _function(getattr(composite.load(folder), kind), list(shapes.values()))
            for name, folder in ((LEVELS, levels), (NATIVE, native))
        }
        timings = interleave(ways, calls=DEPTH)
        times = ", ".join(f"{way} {timings.microseconds(way).median:.1f}" for way in ways)
        yield Row.of(
            f"{kind}, a library of several CPU levels / one for this CPU",
            timings.ratio(LEVELS, NATIVE),
            "x",
            at_most=MOST,
            detail=f"us: {times}",
        )


def _function(op: Any, shapes: list[tuple[int, ...]]) -> Callable[[], Any]:
    random = np.random.default_rng(0)
    first, *weights = (
        tf.constant(random.standard_normal(s) / s[0] ** 0.5, tf.float32) for s in shapes
    )

    @tf.function
    def stack(x: Any) -> Any:
        for _ in range(DEPTH):
            x = op(x, *weights)
        return x

    concrete = stack.get_concrete_function(first)
    return lambda: concrete(first)


if __name__ == "__main__":
    if sys.argv[1:]:
        emit(served(*map(Path, sys.argv[1:])))
    else:
        compare()
