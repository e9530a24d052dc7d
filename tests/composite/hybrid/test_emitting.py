"""What a module's file holds of the constants that its kernels have in forms of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid

pytestmark = pytest.mark.slow

FIRST, SECOND = (
    tf.constant(np.random.default_rng(k).standard_normal(shape) / 16, tf.float32)
    for k, shape in enumerate([(256, 512), (512, 256)])
)
X = np.random.default_rng(2).standard_normal((8, 256)).astype(np.float32)


def dense(x: Any) -> Any:
    return tf.matmul(tf.nn.gelu(tf.matmul(x, FIRST)), SECOND) + 1.0


def saved(function: Any, spec: tf.TensorSpec, path: Path) -> float:
    """Writes a module; how large it is, beside the weights."""
    hybrid.compile(function, spec).save(path)
    return path.stat().st_size / (2 * 256 * 512 * 4)


def test_weights_that_a_kernel_has_packed_are_there_once(tmp_path: Path) -> None:
    import tvm

    path = tmp_path / "dense.so"
    assert saved(dense, tf.TensorSpec([8, 256], tf.float32), path) < 1.3
    loaded = hybrid.load(path)
    assert "R.shape([256, 512])" in loaded.ir
    np.testing.assert_allclose(loaded(X), dense(X), rtol=1e-4, atol=1e-5)
    hybrid.register()
    vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    (found,) = vm["main"](tvm.runtime.tensor(X))
    np.testing.assert_allclose(found.numpy(), dense(X), rtol=1e-4, atol=1e-5)


def test_weights_that_are_read_as_they_are_are_there_too(tmp_path: Path) -> None:
    def of_any_batch(x: Any) -> Any:  # one row reads them as they are
        return dense(x)

    def of_tensorflow(x: Any) -> Any:
        return dense(x), tf.linalg.qr(FIRST).r

    def looked_up(ids: Any) -> Any:  # a wrong index is TensorFlow's
        return dense(tf.gather(X, ids))

    path = tmp_path / "dense.so"
    ids = np.arange(8, dtype=np.int32)
    for function, spec, given in (
        (of_any_batch, tf.TensorSpec([None, 256], tf.float32), (X, X[:1])),
        (of_tensorflow, tf.TensorSpec([8, 256], tf.float32), (X,)),
        (looked_up, tf.TensorSpec([8], tf.int32), (ids,)),
    ):
        assert saved(function, spec, path) > 1.3
        loaded = hybrid.load(path)
        for x in given:
            for y, z in zip(tf.nest.flatten(loaded(x)), tf.nest.flatten(function(x)), strict=True):
                np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="= 8 is not in"):
        loaded(ids + 1)
