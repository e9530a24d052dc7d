"""Tests the elementary functions of kernels on all inputs: `python -m tests.exhaustive tanh exp`.

All float32 numbers and all 16-bit ones go through a kernel of each level that this machine has, and
a part of them through TensorFlow's op; of float64, and of functions of two numbers, samples do.
What is found goes into measured.json, a function at a time, and from there into docs/numerics.md,
see CONTRIBUTING.md. Without names all functions are tested; `--rest` leaves out what is in
measured.json already. 1 if a function is not as compiler/tvm/math/accuracy.py says.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.exhaustive import confirm, conversions, kernels, records, sampled, sweep
from tests.exhaustive.functions import FUNCTIONS, PAIRS
from tests.exhaustive.judge import Found

ROUNDINGS = {f"round_to_{dtype}": dtype for dtype in conversions.NARROW}
_BLOCKS = 64
_RUNS = {"float32": 64, "float64": 8, "float16": 512, "bfloat16": 64}
"""How many runs of neighbours each sign and exponent has in a sample."""
_NEIGHBOURS = 4


def in_blocks(
    swept: Callable[[range], dict[str, Found]], chunks: int, jobs: int
) -> dict[str, Found]:
    """Go through all chunks on some threads."""
    size = chunks // _BLOCKS
    total: dict[str, Found] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(swept, (range(b * size, (b + 1) * size) for b in range(_BLOCKS))):
            for level, one in found.items():
                total.setdefault(level, Found()).add(one)
    return total


def parts(name: str, folder: Path, jobs: int) -> dict[str, Callable[[], dict[str, Found]]]:
    """Return what tests a function in each dtype."""
    if name in ROUNDINGS:
        return {"float32": lambda: _rounding(ROUNDINGS[name], folder, jobs)}
    function = (FUNCTIONS | PAIRS)[name]
    levels = [level for level in kernels.levels() if not function.fused or level != "x86-64-v2"]

    def sample(dtype: str) -> dict[str, Found]:
        return sampled.tested(function, dtype, levels, folder, (_RUNS[dtype], _NEIGHBOURS))

    def sweep_all() -> dict[str, Found]:
        ways = sweep.Ways.of(function, levels, folder)
        return in_blocks(lambda chunks: sweep.swept(ways, chunks), sweep.CHUNKS, jobs)

    own: dict[str, Callable[[], dict[str, Found]]]
    own = {dtype: functools.partial(sample, dtype) for dtype in sampled.DTYPES}
    return own if function.arity > 1 else own | {"float32": sweep_all}


def _rounding(dtype: str, folder: Path, jobs: int) -> dict[str, Found]:
    made = conversions.Rounding(dtype).kernels(kernels.levels(), folder)
    return in_blocks(
        lambda chunks: conversions.swept(dtype, made, chunks), conversions.CHUNKS, jobs
    )


def confirmed(name: str) -> list[str]:
    """Say where what the results were held against is not confirmed."""
    if name in ROUNDINGS:
        return []
    function = (FUNCTIONS | PAIRS)[name]
    places = confirm.worst_inputs(
        one for levels in records.read()[name].values() for one in levels.values()
    )
    wrong = confirm.disagreements(function, places)
    return wrong + (confirm.deviations(function) if function.arity == 1 else [])


def main() -> int:
    """Test functions."""
    names = [*FUNCTIONS, *PAIRS, *ROUNDINGS]
    parser = argparse.ArgumentParser(prog="python -m tests.exhaustive", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="function", help=", ".join(names))
    parser.add_argument("--rest", action="store_true", help="only what is not in measured.json")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="threads")
    parser.add_argument("--dtypes", nargs="+", default=[*sampled.DTYPES], metavar="dtype")
    chosen = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="composite-exhaustive-") as folder:
        for name in chosen.names or names:
            known = records.known(name) if chosen.rest else ()
            for dtype, test in parts(name, Path(folder), chosen.jobs).items():
                if dtype in known or dtype not in chosen.dtypes:
                    continue
                start = time.monotonic()
                found = test()
                print(f"{name}, {dtype}: {time.monotonic() - start:.0f} s", flush=True)
                records.keep(name, dtype, found)
                wrong += records.faults(name, dtype, found)
            wrong += confirmed(name)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
