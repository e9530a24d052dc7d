"""Runs Keras's own tests without regions and with them: `python -m tests.foreign layers/core`.

Each file of tests (the wheel of Keras has them) runs in a process without regions, and in one with
COMPOSITE_REGIONS=1 whose kernels are waited for after each call of a function and serve whether
they are faster or not; there it runs twice, so that what the first pass compiled serves the second.
A test whose outcome differs is printed, unless it fails now and then without regions too.

`--count 5 --seed 3` draws so many of the files. A file is one of keras/src, or a folder of it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.foreign import compare, modules


def main() -> int:
    """Runs the files; 1 if a test's outcome differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.add_argument("files", nargs="*", default=["layers"], help="of keras/src")
    parser.add_argument("--count", type=int, help="how many of the files, drawn; by default all")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--tests", default="", help="only tests that pytest's -k selects")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for a pass of a file")
    chosen = parser.parse_args()
    names = modules.named(chosen.files)
    if chosen.count is not None:
        names = sorted(random.Random(chosen.seed).sample(names, min(chosen.count, len(names))))
    differing = []
    total = compare.Counts()
    for name in names:
        start = time.monotonic()
        found = compare.compared(name, chosen.tests, chosen.limit)
        total += found.counts
        print(f"{name}: {found.counts}, {time.monotonic() - start:.0f} s", flush=True)
        for line in found.lines:
            print(f"  {line}", flush=True)
        differing += found.lines
    print(f"{len(names)} files: {total}; {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
