"""Runs the models of a file in this process: `child.py MODELS LOG`. See `processes`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path


def main(models: Path, log: Path) -> None:
    """Writes a line of JSON for each model, when it has been run."""
    import composite  # noqa: F401 - before TensorFlow, as a user's program may do
    from tests.foreign.nnsmith.counts import Counts
    from tests.foreign.nnsmith.model import read
    from tests.foreign.nnsmith.run import run
    from tests.unmeasured import kernels_serve

    with kernels_serve(), log.open("w", encoding="utf-8") as file:
        for line in models.read_text("utf-8").splitlines():
            model, counts = read(line), Counts()
            told = run(model, counts)
            entry = {"seed": model.seed, "told": told, "counts": asdict(counts)}
            file.write(json.dumps(entry) + "\n")
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
