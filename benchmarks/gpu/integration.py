"""The tests of nodes on GPUs, on this machine's, where TensorFlow's build for GPUs is installed.

They are those of the test devices (tests/gpu/on_device/) that need nothing which only these can do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
FILES = ("kernels", "host_memory", "loops", "gallery", "keras_models", "commands")
_HAS_GPUS = """
import tensorflow as tf
print(tf.test.is_built_with_cuda() and len(tf.config.list_physical_devices("GPU")))
"""


def available() -> bool:
    """Whether TensorFlow is built for GPUs, and has one: asked in a process that ends."""
    done = subprocess.run(
        [sys.executable, "-c", _HAS_GPUS], capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and done.stdout.strip() not in {"False", "0"}


def verdicts() -> dict[str, str]:
    """What pytest says of each file, in bold where a test fails; each has a process of its own."""
    return {name: verdict(name) for name in FILES}


def verdict(name: str, *options: str) -> str:
    """What pytest says of a file, with further options for it."""
    environment = os.environ | {
        "COMPOSITE_TEST_GPU": "real",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    file = f"tests/gpu/on_device/{name}.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, file],
        cwd=_ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if " passed" in line or " failed" in line]
    said = lines[-1].strip("= ") if lines else f"status {done.returncode}"
    return said if done.returncode == 0 and lines else f"**{said}**"
