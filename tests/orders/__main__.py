"""Compares random programs of reads and writes: `python -m tests.orders --count 2000 --seed 7`."""

from __future__ import annotations

import argparse
import sys

from tests.orders.run import Counts, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=12, help="steps of a program")
    parser.add_argument("--kernels", action="store_true", help="three calls, with kernels")
    wanted = parser.parse_args()
    counts = Counts()
    for seed in range(wanted.seed, wanted.seed + wanted.count):
        known = len(counts.differ)
        run(seed, counts, with_kernels=wanted.kernels, size=wanted.size)
        for difference in counts.differ[known:]:
            print(difference, flush=True)
    print(f"{counts.programs} programs, {counts.regions} regions, {len(counts.differ)} differ")
    return 1 if counts.differ else 0


if __name__ == "__main__":
    sys.exit(main())
