"""The kernels of the gallery and the examples over the ring: `python -m tests.exact --count 200`.

Each is compared with its body at drawn sizes, by one task and by several. Prints those that differ,
and in the end what was counted. `--seed` and `--count` draw some of them; by default all are
compared.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_LARGEST = 40  # a size that varies
_MOST = 1 << 24  # elements of the inputs, in all
_TASKS = 3


def main() -> int:
    """Compares kernels; 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.exact", description=__doc__)
    parser.add_argument("--count", type=int, help="how many kernels, drawn; by default all")
    parser.add_argument("--seed", type=int, default=0, help="of the draw, and of sizes")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # see tests/conftest.py
    from benchmarks import proofs
    from tests.compiler.tvm import exact

    draw = random.Random(chosen.seed)
    asked = [(one, constants) for one in proofs.asked() for constants in _ways(one)]
    if chosen.count is not None:
        asked = draw.sample(asked, min(chosen.count, len(asked)))
    counts, differ = exact.Counts(), 0
    for one, constants in asked:
        arrays = _arrays(one, draw)
        if sum(a.size for a in arrays) > _MOST:
            counts.uncovered["larger than what is compared"] += 1
            continue
        kernel = exact.Asked(one.library, one.shapes, sizes=one.sizes, constants=constants)
        with tempfile.TemporaryDirectory() as folder:
            for tasks in (1, _TASKS):
                found = counts.compare(kernel, arrays, Path(folder), tasks)
                differ += bool(found)
                for line in found:
                    print(f"{one.title}, constants {constants}, {tasks} tasks: {line}", flush=True)
    print(counts)
    print(f"{differ} differ")
    return 1 if differ else 0


def _ways(one: Any) -> list[tuple[int, ...]]:
    return list(dict.fromkeys([(), one.constants()]))


def _arrays(one: Any, draw: random.Random) -> list[np.ndarray]:
    """Inputs of a kernel: integers are places that every dim has, or sizes."""
    from composite.compiler.tvm.nodes.node import dtype_name

    sizes: dict[str, int] = {}
    made = []
    arguments = one.library.function[0].signature.input_arg
    for i, (argument, shape) in enumerate(zip(arguments, one.shapes, strict=True)):
        dtype = _numpy(dtype_name(argument.type, argument.name))
        dims = [_size(dim, sizes, draw) for dim in shape]
        made.append(np.asarray(dims[0], dtype) if i in one.sizes else np.zeros(dims, dtype))
    return made


def _size(dim: int | str, sizes: dict[str, int], draw: random.Random) -> int:
    return dim if isinstance(dim, int) else sizes.setdefault(dim, draw.randint(1, _LARGEST))


def _numpy(dtype: str) -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)


if __name__ == "__main__":
    sys.exit(main())
