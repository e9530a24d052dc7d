"""The kernel of one layer without an op around it: compiled for the shape, called by TVM.

What a node costs beyond this is what TensorFlow and the op add. Its threads are those of TVM's own
pool; the kernel takes all weights as inputs. It is what the compiler makes for the layer, also
where the op prefers its expansion.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# Read when TVM is imported. It takes half of the cores if it is not told, and pins its workers.
os.environ |= {"TVM_NUM_THREADS": str(len(os.sched_getaffinity(0))), "TVM_BIND_THREADS": "0"}

import tvm

from benchmarks.sides.ours import OPS
from benchmarks.sides.side import Settings, Way
from benchmarks.works.layers import Array
from benchmarks.works.work import Program
from composite.compiler import tvm as backend


class BareKernel:
    """The kernels of single layers; none for a layer that the compiler does not cover."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="composite-bench-")
        self._numbers = itertools.count()  # a library that is loaded keeps its path

    def versions(self) -> dict[str, str]:
        """TVM."""
        return {"apache-tvm": tvm.__version__}

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column. ValueError for a stack: a kernel is one layer."""
        if len(program.steps) != 1:
            raise ValueError("a bare kernel is timed for a program of one layer")
        arrays = [program.x, *(program.weights[i] for i in program.steps[0])]
        op, attrs = OPS[program.kind]
        try:
            kernel = backend.compile(
                op.expand(*arrays, **attrs), [list(a.shape) for a in arrays], name="layer"
            )
        except backend.NotCovered:
            return {}
        return {"bare kernel": {"": lambda: self._way(kernel, arrays, program)}}

    def _way(self, kernel: backend.Kernel, arrays: list[Array], program: Program) -> Way:
        path = Path(self._folder.name) / f"layer{next(self._numbers)}.so"
        backend.link(kernel, path, runtime=None)
        function = tvm.runtime.load_module(str(path))[kernel.name]
        tensors = [tvm.runtime.tensor(a) for a in (*arrays, np.empty(program.y, np.float32))]

        def result() -> Any:
            function(*tensors)
            return tensors[-1].numpy()

        return Way(lambda: function(*tensors), result, kernel.strategy)


def side() -> BareKernel:
    """The side of this module."""
    return BareKernel()
