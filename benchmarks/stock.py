"""Saved models in a process that has TensorFlow and nothing of this package.

    python -m benchmarks.stock FOLDER

FOLDER has the models `portable` and `by_hand`, and their input, input.npy. The result of the first
is written to stock.npy; one line of JSON has how long calls of the second take, as a multiple.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.timing import interleave


def served(folder: Path, x: Any) -> Any:
    """A call of the signature that a server runs, on this input."""
    model = tf.saved_model.load(str(folder))
    (name,) = model.signatures["serving_default"].structured_input_signature[1]
    given = {name: tf.constant(x)}

    def call() -> Any:
        # By way of the model: its variables live as long as it does.
        (y,) = model.signatures["serving_default"](**given).values()
        return y

    return call


def main(folder: Path, seconds: float = 3.0) -> None:
    """Runs both; see above."""
    x = np.load(folder / "input.npy")
    ways = {name: served(folder / name, x) for name in ("portable", "by_hand")}
    np.save(folder / "stock.npy", ways["portable"]())
    timings = interleave(ways, seconds=seconds)
    if ours := sorted(name for name in sys.modules if name.partition(".")[0] == "composite"):
        raise RuntimeError(f"this process was to have nothing of composite, but has {ours[0]}")
    times = {name: timings.microseconds(name).median for name in ways}
    print(json.dumps({"ratio": asdict(timings.ratio("by_hand", "portable")), "times": times}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
