"""Asks the prover of random integers: `python -m tests.proofs --count 10000 --seed 7`.

Prints each claim that is false, and how much of what is so is proven. `--functions` has functions
that are run step by step, in the place of integers.
"""

from __future__ import annotations

import argparse
import sys

from tests.proofs import expressions, functions


def main() -> int:
    """Asks; 1 if a claim is false."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--functions", action="store_true")
    wanted = parser.parse_args()
    run = functions.run if wanted.functions else expressions.run
    counts = expressions.Counts()
    for seed in range(wanted.seed, wanted.seed + wanted.count):
        known = len(counts.false)
        run(seed, counts)
        for line in counts.false[known:]:
            print(line, flush=True)
    print(counts)
    return 1 if counts.false else 0


if __name__ == "__main__":
    sys.exit(main())
