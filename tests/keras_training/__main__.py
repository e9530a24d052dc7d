"""Trains Keras's layers and common workflows: `python -m tests.keras_training --count 20 --seed 1`.

Each training runs without regions and with them, first by TensorFlow's ops, then by the kernels,
all of which have to serve. Prints each that fails or differs, and in the end what was counted.
`--all` runs the whole matrix; `--layers` and `--optimizers` choose from it.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from typing import Any


def main() -> int:
    """Runs trainings; 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.keras_training", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="how many trainings are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the draw, and of the numbers")
    parser.add_argument("--all", action="store_true", help="each layer with each optimizer")
    parser.add_argument("--layers", default="", help="only these, separated by commas")
    parser.add_argument("--optimizers", default="", help="only these, separated by commas")
    parser.add_argument("--workflows", default=None, help='only these workflows; "" for all')
    parser.add_argument("--no-kernels", action="store_true", help="by TensorFlow's ops alone")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    if chosen.no_kernels:
        os.environ["COMPOSITE_JIT"] = "0"
    with tempfile.TemporaryDirectory(prefix="composite-training-") as folder:
        os.environ.setdefault("COMPOSITE_CACHE_DIR", folder)
        from tests.keras_training.compare import Counts
        from tests.unmeasured import kernels_serve

        counts = Counts()
        start = time.monotonic()
        with kernels_serve():
            for name, make in _chosen(chosen):
                before = time.monotonic()
                counts.check(name, make, with_kernels=not chosen.no_kernels)
                print(f"{name}: {time.monotonic() - before:.0f} s", flush=True)
        print(f"{time.monotonic() - start:.0f} s: {counts}")
    return 1 if counts.failed else 0


def _chosen(chosen: argparse.Namespace) -> list[tuple[str, Any]]:
    """Names and trainings: those of the matrix and the workflows, or what was asked for."""
    from tests.keras_training import matrix, workflows

    if chosen.workflows is not None:
        only = _split(chosen.workflows)
        return [(n, w) for n, w in workflows.makers() if not only or n in only]
    only, with_these = _split(chosen.layers), _split(chosen.optimizers)
    pairs = [
        pair
        for pair in matrix.names()
        if (not only or pair[0] in only) and (not with_these or pair[1] in with_these)
    ]
    found = [(f"{a} with {b}", matrix.training(a, b, chosen.seed)) for a, b in pairs]
    if only or with_these or chosen.all:
        return found
    everything = [*found, *workflows.makers()]
    return random.Random(chosen.seed).sample(everything, min(chosen.count, len(everything)))


def _split(names: str) -> set[str]:
    return {name for name in names.split(",") if name}


if __name__ == "__main__":
    raise SystemExit(main())
