"""Beam's workers run the kernels of a model that brings them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.gallery.mish import mish
from tests import beam
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow,  # three processes load TensorFlow
    pytest.mark.skipif(not beam.is_there, reason=beam.MISSING),
]


class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 16])])
    def serve(self, x: tf.Tensor) -> tf.Tensor:
        return mish(x) * 2.0


def test_workers_run_the_kernels_of_the_model(tmp_path: Path) -> None:
    signatures = {"mish": [{"x": ("float32", ("n", 16))}]}
    library = composite.build([mish], tmp_path / "library", name="mish_ops", signatures=signatures)
    composite.save(Model(), tmp_path / "model", "inside", libraries=[library])
    random, shards = np.random.default_rng(0), []
    for i, rows in enumerate((10, 33, 4, 21)):
        shards.append(tmp_path / f"shard-{i}.npy")
        np.save(shards[-1], random.standard_normal((rows, 16)).astype(np.float32))
    arguments = [tmp_path / "model", tmp_path / "out", *shards, "--rows=8", "--runner=FnApiRunner"]
    workers = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    done = subprocess.run(
        [beam.PYTHON, "-m", "examples.batch_inference.pipeline", *map(str, arguments), *workers],
        cwd=ROOT,
        env=os.environ | {"COMPOSITE_JIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["rows"] == 68
    assert counts["kernels"] >= 11, "a launch for each call"
    for shard in shards:
        x = np.load(shard)
        expected = 2 * x * np.tanh(np.log1p(np.exp(x)))
        np.testing.assert_allclose(np.load(tmp_path / "out" / shard.name), expected, rtol=1e-5)
