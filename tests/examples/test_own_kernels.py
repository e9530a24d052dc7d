"""examples/own_kernels: kernels that an author gives his ops, of TVM and of C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.own_kernels import ops

SOURCE = Path(ops.__file__).with_name("count_bits.c")


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_padding_runs_the_kernel_of_tvm(mode: str) -> None:
    x = tf.random.stateless_normal([3, 8, 8], [1, 2])
    with composite.options(backend="tvm"):
        y = ops.mirror_pad(x, width=2, mode=mode)
    np.testing.assert_array_equal(y, tf.pad(x, [[0, 0], [2, 2], [2, 2]], mode))
    assert "the kernel is yours" in composite.explain(ops.mirror_pad, x, width=2, mode=mode).reason


def test_other_calls_and_gradients_come_of_the_body() -> None:
    x = tf.random.stateless_normal([3, 5, 8], [1, 2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(ops.mirror_pad(x, width=3) ** 2)
        z = tf.reduce_sum(tf.pad(x, [[0, 0], [3, 3], [3, 3]], "REFLECT") ** 2)
    np.testing.assert_allclose(tape.gradient(y, x), tape.gradient(z, x), rtol=1e-6)


def test_counting_runs_the_kernel_of_c(tmp_path: Path) -> None:
    objects = tmp_path / "count_bits.o"
    subprocess.run(["cc", "-O2", "-fPIC", "-c", str(SOURCE), "-o", str(objects)], check=True)
    ops.use_c(objects)
    x = tf.constant([0, 1, 255, -1], tf.int32)
    with composite.options(backend="tvm"):
        assert ops.count_bits(x).numpy().tolist() == [0, 1, 8, 32]
    folder = composite.build([ops.mirror_pad, ops.count_bits], tmp_path / "lib", name="own_ops")
    kernels = composite.load(folder, tensorflow=False)
    assert kernels["count_bits"](x.numpy()).tolist() == [0, 1, 8, 32]
    images = np.ones([2, 8, 8], np.float32)
    assert kernels["mirror_pad"](images, width=2).shape == (2, 12, 12)
