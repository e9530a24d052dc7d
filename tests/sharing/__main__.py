"""Programs that share memory, with our kernels: `python -m tests.sharing --count 500 --seed 1`.

Prints each program in which a tensor, a variable or an array holds something else than without us,
and in the end what was counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time


def main() -> int:
    """Runs programs; 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.sharing", description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; then the next")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory(prefix="composite-sharing-") as folder:
        os.environ["COMPOSITE_CACHE_DIR"] = folder
        from tests.sharing.run import Counts, Runner
        from tests.unmeasured import kernels_serve

        counts = Counts()
        start = time.monotonic()
        with kernels_serve():
            runner = Runner()
            for seed in range(chosen.seed, chosen.seed + chosen.count):
                runner.run(seed, counts)
    for difference in counts.differ:
        print(difference)
    seconds = time.monotonic() - start
    print(
        f"{counts.programs} programs of {counts.steps} steps in {seconds:.0f} s: {counts.compared}"
        f" tensors compared, {len(counts.differ)} programs differ; {counts.used}"
    )
    return 1 if counts.differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
