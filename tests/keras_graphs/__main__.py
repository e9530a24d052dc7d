"""Accelerates random Keras models: `python -m tests.keras_graphs --count 500 --seed 1`.

Each is called without regions and with them, first by TensorFlow's ops, then by the kernels, all of
which have to serve. Prints each seed whose results differ, and in the end what was counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time


def main() -> int:
    """Runs models; 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.keras_graphs", description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="how many models")
    parser.add_argument("--seed", type=int, default=0, help="of the first model; then the next")
    parser.add_argument("--no-kernels", action="store_true", help="by TensorFlow's ops alone")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    with tempfile.TemporaryDirectory(prefix="composite-graphs-") as folder:
        os.environ["COMPOSITE_CACHE_DIR"] = folder
        from tests import by_algebra
        from tests.keras_graphs.run import Counts, run
        from tests.unmeasured import kernels_serve

        counts = Counts()
        start = time.monotonic()
        with kernels_serve(), by_algebra.told():
            for seed in range(chosen.seed, chosen.seed + chosen.count):
                run(seed, counts, with_kernels=not chosen.no_kernels)
    print(f"{chosen.count} models in {time.monotonic() - start:.0f} s: {counts}")
    return 1 if counts.differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
