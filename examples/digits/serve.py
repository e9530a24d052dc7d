"""The second process: serves the saved model with the built library alone.

    python serve.py <saved model> <built library> <images.npy> <predictions.npy>

Writes the logits and prints, as JSON, what of a compiler is mapped into the process: nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import composite


def mapped_compilers() -> list[str]:
    """Libraries of TVM or MLIR in this process, by what the kernel says is mapped."""
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    return sorted(p for p in paths if "tvm" in Path(p).name.lower() or "torch_mlir" in p)


def main(model_dir: str, library_dir: str, images: str, predictions: str) -> None:
    """Load, predict, say how."""
    ops = composite.load(library_dir)
    model: Any = tf.saved_model.load(model_dir)
    x = tf.constant(np.load(images))
    np.save(predictions, model.serve(x).numpy())

    first = model.variables[:2]
    explanation = composite.explain(ops.fused_fully_connected, x, *first, act="RELU")
    report = {
        "mapped": mapped_compilers(),
        "imported": sorted({"tvm", "tvm_ffi", "torch_mlir", "mlir"} & set(sys.modules)),
        "path": explanation.path,
        "why": str(explanation),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
