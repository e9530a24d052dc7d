"""Runs what is random for a while: `make soak MINUTES=60 SEED=7`.

In turns: programs of the fuzzer by their expansions, with tensors that decide, and by kernels;
chained calls of TensorFlow's functions, with gradients, and by kernels; gradients of random
programs; kernels of random chains of ops; a training from which compiler, cache and folders are
taken away; random Keras models with regions; trainings of Keras's layers, and what users do with
models; programs that share memory; random orders of reads and writes of variables; changed calls of
TensorFlow's functions; Keras's own tests of layers with regions; models that NNSmith generates;
rows of bodies and of models in batches, by invariant kernels; mistakes in the loops of kernels,
which the checks must notice; questions to the prover about integers and functions; all cases that
the tests of kernels draw, of which `make test` has a third.
Each turn is a process with a seed, a cache and a temporary folder of its own. What it runs is
printed before, so a finding can be run again alone.
"""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import draws

TURNS = (
    "tests.fuzz --count 2000 --seed {seed}",
    "tests.fuzz --tensors --size 4 --count 500 --seed {seed}",
    "tests.fuzz --kernels --size 2 --count 300 --seed {seed}",
    "tests.fuzz --kernels --measured --size 2 --count 50 --seed {seed}",
    "tests.corpus --count 200 --seed {seed}",
    "tests.corpus --kernels --count 100 --seed {seed}",
    "tests.composite.autodiff.test_gradient_programs {seed} 50",
    "tests.composite.jit.taken_away 20 {seed} {folder}",
    "tests.chains --count 500 --seed {seed}",
    "tests.keras_graphs --count 20 --seed {seed}",
    "tests.keras_training --count 20 --seed {seed}",
    "tests.sharing --count 100 --seed {seed}",
    "tests.orders --count 1000 --seed {seed}",
    "tests.orders --kernels --count 100 --seed {seed}",
    "tests.compiler.library {seed} 4000",
    "tests.foreign layers --count 2 --seed {seed}",
    "tests.foreign.nnsmith --count 200 --seed {seed}",
    "tests.invariance --count 30 --seed {seed}",
    "tests.invariance --models --seed {seed}",
    "tests.mutation --count 50 --seed {seed}",
    "tests.proofs --count 5000 --seed {seed}",
    "tests.proofs --functions --count 500 --seed {seed}",
    "pytest -q -m hypothesis tests/compiler/tvm",
)


def main(minutes: float, seed: int) -> int:
    """Take turns until the time is over, and each at least once; 1 if one of them found something.

    A turn that has begun is not cut short.
    """
    end = time.monotonic() + 60 * minutes
    found = []
    for number, turn in enumerate(itertools.cycle(TURNS)):
        if number >= len(TURNS) and time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory(prefix="composite-soak-") as folder:
            what = turn.format(seed=seed + 10_000 * number, folder=folder)
            print(f"==== python -m {what}", flush=True)
            command = [sys.executable, "-m", *shlex.split(what)]
            done = subprocess.run(command, env=_environment(Path(folder)), check=False)
        if done.returncode:
            found.append(what)
    print(f"\n{number} turns, {len(found)} with findings")
    for what in found:
        print(f"  python -m {what}")
    return 1 if found else 0


def _environment(folder: Path) -> dict[str, str]:
    variables = {"TMPDIR": folder / "tmp", "COMPOSITE_CACHE_DIR": folder / "cache"}
    for own in variables.values():
        own.mkdir(mode=0o700)
    return os.environ | {name: str(own) for name, own in variables.items()} | {draws.ALL: "1"}


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))
