"""Which buffers stages share, and that what is still read stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.target import Target
from tests.compiler.tvm.conftest import library_of


def layers(x: Any, f: Any, w: Any) -> Any:
    """Convolutions of one size and a wider product; the first of them is read by the last, too."""
    first = tf.nn.relu(tf.nn.conv2d(x, f, 1, "SAME"))
    second = tf.nn.relu(tf.nn.conv2d(first, f, 1, "SAME"))
    third = tf.nn.relu(tf.nn.conv2d(second, f, 1, "SAME"))
    fourth = tf.nn.relu(tf.nn.conv2d(third, f, 1, "SAME"))
    wide = tf.nn.relu(tf.reshape(fourth, [-1, 8]) @ w)
    return tf.nn.conv2d(first, f, 1, "SAME") + tf.reshape(wide[:, 8:], first.shape)


ARRAYS = [
    np.random.default_rng(0).normal(size=shape).astype(np.float32) * 0.3
    for shape in ((2, 6, 5, 8), (3, 3, 8, 8), (8, 16))
]


def test_a_buffer_serves_again_when_nobody_reads_it() -> None:
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in ARRAYS]
    shapes = [a.shape for a in ARRAYS]
    written = backend.write(library_of(layers, specs), shapes, target=Target.of("x86-64-v3", 2))
    (function,) = written.module.functions.values()
    lines = [line for line in str(function).splitlines() if "temp_" in line and "alloc" in line]
    assert len(lines) == 4, "the first layer's, two that take turns, and a wider one"


def test_results_are_those_of_buffers_of_their_own(compiler: Any) -> None:
    compiler.compare(layers, *ARRAYS, rtol=1e-5, atol=1e-5)


def test_each_place_in_a_tensor_has_a_buffer_of_its_own() -> None:
    def picks(x: Any, i: Any, j: Any) -> Any:
        return tf.gather(x, [1, 0]) + x[i], x[i, j]

    specs = [tf.TensorSpec([5, 7, 20]), tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)]
    written = backend.write(library_of(picks, specs), [(5, 7, 20), (), ()])
    assert written.proof.is_complete, written.proof
