"""Runs bodies of the corpus: `python -m tests.corpus --count 500 --seed 1 --kernels`.

Prints each that differs, as its text and its call, and in the end what was counted.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time


def main() -> int:
    """Runs bodies; 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many bodies")
    parser.add_argument("--seed", type=int, default=0, help="of the first body; then the next")
    parser.add_argument("--kernels", action="store_true", help="kernels, too")
    parser.add_argument("--refused", action="store_true", help="tell of kernels that failed, too")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # see tests/conftest.py
    with tempfile.TemporaryDirectory(prefix="composite-corpus-") as folder:
        os.environ["COMPOSITE_CACHE_DIR"] = folder
        from tests import by_algebra
        from tests.unmeasured import kernels_serve

        with kernels_serve(), by_algebra.told():
            return _run(chosen)


class _Crashes(logging.Handler):
    """What the log says of kernels that the compiler raised for."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        from tests.corpus.run import CRASHED

        if CRASHED.search(record.getMessage()):
            self.told.append(record.getMessage())


def _run(chosen: argparse.Namespace) -> int:
    import tensorflow as tf

    from composite.binding.log import logger
    from composite.jit import worker
    from tests.corpus import bodies
    from tests.corpus.run import BASIC, KERNELS, run
    from tests.fuzz.run import leave_graphs_alone

    tf.get_logger().setLevel("ERROR")
    leave_graphs_alone()
    ways = BASIC + KERNELS * chosen.kernels
    counts: dict[str, int] = {}
    found = 0
    start = time.monotonic()
    crashes = _Crashes()
    logger.addHandler(crashes)
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        body = bodies.draw(seed)
        for finding in run(body, ways, counts, with_refused=chosen.refused):
            found += 1
            told = ", ".join(f"{x.dtype.name}{list(x.shape)}" for x in body.inputs)
            print(f"seed {seed}, {finding.way}: {finding.what}\n{body.text}of {told}", end="")
            print(f" ({body.label})\n", flush=True)
    worker.wait()  # for kernels that calls have asked for since
    for told in crashes.told:
        found += 1
        print(f"up to seed {chosen.seed + chosen.count - 1}, behind the calls: {told}\n")
    print(f"{chosen.count} bodies in {time.monotonic() - start:.0f} s, {found} differ: {counts}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
