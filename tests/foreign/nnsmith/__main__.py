"""Runs models that NNSmith generates: `python -m tests.foreign.nnsmith --count 1000 --seed 1`.

Each is called by TensorFlow's ops, with regions, and by the kernels, which serve whether they are
faster or not. Its weights are inputs, constants or variables, and of half of the models gradients
are compared, too. Prints each seed whose results differ, and in the end what was counted.

`--models FILE` runs models that were generated before, a line each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.foreign.nnsmith.counts import Counts
from tests.foreign.nnsmith.processes import run_all

_AT_ONCE = 200  # models of a process


def main() -> int:
    """Runs models; 1 if one of them differs, or no kernel ran."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign.nnsmith", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many models")
    parser.add_argument("--seed", type=int, default=0, help="of the first model; then the next")
    parser.add_argument("--models", type=Path, help="a file of models, instead of these")
    chosen = parser.parse_args()
    total, start = Counts(), time.monotonic()
    for lines in _parts(chosen):
        counts, found = run_all(lines)
        total += counts
        total.differ += len(found)
        for told in found:
            print(told, flush=True)
        print(f"{time.monotonic() - start:.0f} s: {total}", flush=True)
    return 1 if total.differ or not total.launches else 0


def _parts(chosen: argparse.Namespace) -> Iterator[Sequence[str]]:
    """Models as lines, as many as a process takes."""
    if chosen.models is not None:
        yield chosen.models.read_text("utf-8").splitlines()
        return
    from tests.foreign.nnsmith.generated import generated

    end = chosen.seed + chosen.count
    for first in range(chosen.seed, end, _AT_ONCE):
        yield generated(first, min(_AT_ONCE, end - first))


if __name__ == "__main__":
    sys.exit(main())
