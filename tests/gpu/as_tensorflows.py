"""A plugin of pytest's: TensorFlow has the test devices before any test runs, as its own GPUs."""

from __future__ import annotations

import os

from tensorflow.python.framework import load_library

load_library.load_pluggable_device_library(os.environ["COMPOSITE_CUDA_DRIVER"])
