"""Compares rows of drawn bodies and of models: `python -m tests.invariance --count 30 --seed 1`.

Prints each body or model whose rows differ. `--only SEED` runs the bodies of one seed again.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path


def main() -> int:
    """Compare; 1 if rows differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.invariance", description=__doc__)
    parser.add_argument("--count", type=int, default=30, help="how many bodies")
    parser.add_argument("--seed", type=int, default=0, help="of the first body; then the next")
    parser.add_argument("--only", type=int, help="run the bodies of this seed alone")
    parser.add_argument("--models", action="store_true", help="run the models instead of bodies")
    chosen = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    start = time.monotonic()
    bad = _models(chosen.seed) if chosen.models else _bodies(chosen)
    print(f"{bad} differ, in {time.monotonic() - start:.0f} s")
    return 1 if bad else 0


def _bodies(chosen: argparse.Namespace) -> int:
    import numpy as np

    from tests.compiler.tvm.conftest import Compiler
    from tests.invariance.bodies import BODIES
    from tests.invariance.comparing import differences

    bad, names = 0, [*BODIES]
    only = chosen.only is not None
    seeds = [chosen.only] * len(names) if only else range(chosen.seed, chosen.seed + chosen.count)
    with tempfile.TemporaryDirectory(prefix="composite-invariance-") as folder:
        for number, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            name = names[(number if only else seed) % len(names)]
            body = BODIES[name](rng)
            found = differences(Compiler(Path(folder)), body, rng)
            shapes = [weight.shape for weight in body.weights]
            for line in found:
                print(f"seed {seed}: {name} of {body.row}, {shapes}: {line}", flush=True)
            bad += bool(found)
    return bad


def _models(seed: int) -> int:
    import numpy as np

    from tests.invariance.models import MODELS, differences

    bad = 0
    for name, make in MODELS.items():
        found = differences(make(), np.random.default_rng(seed))
        for line in found:
            print(f"{name}: {line}", flush=True)
        bad += bool(found)
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
