"""Fuzzes: `python -m tests.fuzz --count 20000 --seed 7` prints each difference as a small program.

`--only SEED` runs one program again and prints it as it is.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import os
import sys
import tempfile
import time

from tests.fuzz.program import Program, generate
from tests.fuzz.scope import Options

_HARD_LIMIT = 120.0  # seconds of a program that is tried while shrinking


def main() -> int:
    """Runs programs; 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; then the next")
    parser.add_argument("--size", type=int, default=6, help="statements of a body, about")
    parser.add_argument("--samples", type=int, default=2, help="1: of either dtype; half the time")
    parser.add_argument("--ways", default="eager,unknown dims", help="ways of composite.check")
    parser.add_argument("--kernels", action="store_true", help="programs that kernels may cover")
    parser.add_argument("--measured", action="store_true", help="kernels have to win, too: slow")
    parser.add_argument("--tensors", action="store_true", help="tensors decide ifs and whiles")
    parser.add_argument("--only", type=int, help="run this program alone, and print it")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # oneDNN's ops, which TensorFlow uses by default on processors with AVX-512, give other results:
    # beside a NaN, its eager Softmax has zeros where that of an expansion has NaNs.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    # A kernel of a program is of no use to anybody else.
    with tempfile.TemporaryDirectory(prefix="composite-fuzz-") as folder:
        os.environ["COMPOSITE_CACHE_DIR"] = folder
        from tests import by_algebra
        from tests.unmeasured import kernels_serve

        serving = contextlib.nullcontext() if chosen.measured else kernels_serve()
        with serving, by_algebra.told():
            return _fuzz(chosen)


def _fuzz(chosen: argparse.Namespace) -> int:
    import tensorflow as tf

    from tests.fuzz.run import Verdict, leave_graphs_alone, run
    from tests.fuzz.shrink import shrink

    tf.get_logger().setLevel("ERROR")
    leave_graphs_alone()
    options = Options(
        for_kernels=chosen.kernels, tensor_conditions=chosen.tensors, size=chosen.size
    )
    ways = chosen.ways.split(",") + ["kernel"] * chosen.kernels
    first, count = (chosen.seed, chosen.count) if chosen.only is None else (chosen.only, 1)
    kinds: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    found: dict[str, int] = {}
    start = time.monotonic()

    def smallest(program: Program, verdict: Verdict) -> Program:
        def same(candidate: Program, version: int) -> bool:
            # What no signal ends, such as a number of a billion digits, ends the process.
            faulthandler.dump_traceback_later(_HARD_LIMIT, exit=True)
            other = run(candidate, ways, version, chosen.samples)
            faulthandler.cancel_dump_traceback_later()
            return (other.kind, other.subject) == (verdict.kind, verdict.subject)

        return shrink(program, same)

    for seed in range(first, first + count):
        program = generate(seed, options)
        if chosen.only is not None:
            print(program.text)
        verdict = run(program, ways, samples=chosen.samples)
        kinds[verdict.kind] += 1
        reasons.update(verdict.skipped)
        if verdict.kind == "refused":
            reasons[verdict.subject] += 1
        if verdict.kind == "differs":
            found[verdict.subject] = found.get(verdict.subject, 0) + 1
            if found[verdict.subject] == 1:  # the others have this cause, most likely
                print(f"\n---- seed {seed}, {verdict.way}: {verdict.what}\n", flush=True)
                print(smallest(program, verdict).text, flush=True)
    print(f"\n{count} programs in {time.monotonic() - start:.0f} s: {dict(kinds.most_common())}")
    for reason, times in reasons.most_common(20):
        print(f"  {times:6}  {reason}")
    for subject, times in sorted(found.items(), key=lambda item: -item[1]):
        print(f"  {times:6}  differs: {subject}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
