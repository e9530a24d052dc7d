"""Compares random programs of reads and writes: `python -m tests.orders --count 2000 --seed 7`.

Prints each program that differs, and what was counted. `--kernels` calls each three times and has
every kernel that is checked serve; without it TensorFlow's ops compute.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys


def main() -> int:
    """Runs programs; 1 if one of them differs, or if kernels were to serve and none did."""
    parser = argparse.ArgumentParser(prog="python -m tests.orders", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=12, help="steps of a program")
    parser.add_argument("--kernels", action="store_true", help="three calls, with kernels")
    wanted = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from tests.orders.run import Counts, run
    from tests.unmeasured import kernels_serve

    counts = Counts()
    with kernels_serve() if wanted.kernels else contextlib.nullcontext():
        for seed in range(wanted.seed, wanted.seed + wanted.count):
            known = len(counts.differ)
            run(seed, counts, with_kernels=wanted.kernels, size=wanted.size)
            for difference in counts.differ[known:]:
                print(difference, flush=True)
            if counts.programs % 500 == 0:
                print(counts, flush=True)
    print(counts)
    none_served = wanted.kernels and not counts.launches
    if none_served:
        print("No kernel was launched.")
    return 1 if counts.differ or none_served else 0


if __name__ == "__main__":
    sys.exit(main())
