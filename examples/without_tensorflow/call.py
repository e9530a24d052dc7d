"""Calls a dense layer of a built library with NumPy arrays; TensorFlow is not in the process.

    python -m examples.without_tensorflow.call LIBRARY

LIBRARY is a folder that composite.build wrote of examples/digits/ops.py.
"""

import sys

import numpy as np

import composite

if __name__ == "__main__":
    ops = composite.load(sys.argv[1], tensorflow=False)
    x = np.repeat([[1.0], [2.0]], 64, axis=1).astype(np.float32)
    w = np.repeat(np.arange(-4.0, 6.0)[:, None], 64, axis=1).astype(np.float32)
    y = ops["fused_fully_connected"](x, w, np.arange(10, dtype=np.float32), act="RELU")
    print("\n".join(" ".join(f"{value:g}" for value in row) for row in y))
    assert "tensorflow" not in sys.modules
