"""Makes mistakes in the loops of kernels: `python -m tests.mutation --count 300 --seed 7`.

Prints each that changes a result and is noticed by no check, and a table of what was noticed by
which. `--subject` and `--kind` name kernels and kinds of mistakes, `--place` one place of a kind;
by default places are drawn, of all kinds in all kernels.
"""

from __future__ import annotations

import argparse
import os
import sys


def main() -> int:
    """Makes mistakes; 1 if one of them is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--place", type=int, help="of the one kind in the one kernel named")
    parser.add_argument("--verbose", action="store_true", help="print what came of each")
    wanted = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # see tests/conftest.py
    from tests.mutation.run import Counts, Mistake, drawn, run

    if wanted.place is not None:
        mistakes = [Mistake(wanted.subject[0], wanted.kind[0], wanted.place)]
    else:
        mistakes = drawn(wanted.count, wanted.seed, wanted.subject, wanted.kind)
    counts = Counts()
    for mistake, outcome in run(mistakes):
        known = len(counts.missed)
        counts.add(mistake, outcome)
        for line in counts.missed[known:]:
            print(f"missed: {line}", flush=True)
        if wanted.verbose:
            print(tuple(mistake), outcome, flush=True)
    print(counts)
    return 1 if counts.missed else 0


if __name__ == "__main__":
    sys.exit(main())
