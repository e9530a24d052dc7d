"""Checks kernels of random bodies: `python -m tests.chains --count 500 --seed 1`.

Prints each body that differs, and in the end what was counted. `--only SEED` runs one again.
"""

from __future__ import annotations

import argparse
import collections
import os
import tempfile
import time
from pathlib import Path


def main() -> int:
    """Runs bodies; 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.chains", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many bodies")
    parser.add_argument("--seed", type=int, default=0, help="of the first body; then the next")
    parser.add_argument("--only", type=int, help="run this body alone, and print it")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # see tests/conftest.py
    from tests.chains import bodies
    from tests.chains.run import run

    first, count = (chosen.seed, chosen.count) if chosen.only is None else (chosen.only, 1)
    kinds: collections.Counter[str] = collections.Counter()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="composite-chains-") as folder:
        for seed in range(first, first + count):
            body = bodies.draw(seed)
            if chosen.only is not None:
                print(body.text)
            verdict = run(body, Path(folder), symbolic=seed % 4 == 3)
            kinds[verdict.kind] += 1
            if verdict.kind == "differs":
                print(f"seed {seed}: {verdict.what}\n{body.text}", flush=True)
    print(f"{count} bodies in {time.monotonic() - start:.0f} s: {dict(kinds.most_common())}")
    return 1 if kinds["differs"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
