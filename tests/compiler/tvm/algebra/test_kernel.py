"""Kernels are equal to their bodies over the ring, and kernels that are wrong are not."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.algebra import kernel as algebra
from tests.compiler.tvm import exact
from tests.compiler.tvm.algebra.altered import altered, places
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.exact import gradient
from tests.compiler.tvm.host import Loaded

ALTERED = 5  # kernels of a body


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 4.0), v)


def layer_norm(x: Any) -> Any:
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def recurrence(x: Any, weights: Any) -> Any:
    def step(i: Any, h: Any) -> Any:
        return i + 1, tf.tanh(x[:, i] + tf.matmul(h, weights))

    return tf.while_loop(lambda i, _: i < 6, step, [0, x[:, 0]])[1]


def convolution(x: Any, filters: Any) -> Any:
    return tf.nn.relu(tf.nn.conv2d(x, filters, 2, "SAME"))


def dense(x: Any, weights: Any) -> Any:
    return tf.nn.gelu(tf.matmul(x, weights), approximate=True)


QUERIES = [floats(1, 2, 70, 16)] * 3
IMAGES, FILTERS = floats(2, 7, 9, 5), floats(3, 3, 5, 7)

BODIES: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "elementwise": (lambda x: tf.nn.silu(x) * 2.0 - tf.math.log1p(x), [floats(7, 33)]),
    "dense": (dense, [floats(13, 40), floats(40, 70)]),
    "attention": (attention, QUERIES),
    "layer norm": (layer_norm, [floats(9, 100)]),
    "gradient of layer norm": (gradient(layer_norm), [floats(9, 100)]),
    "log of softmax": (tf.nn.log_softmax, [floats(5, 37)]),
    "convolution": (convolution, [IMAGES, FILTERS]),
    "gradients of a convolution": (gradient(convolution), [IMAGES, FILTERS]),
    "pool": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), [IMAGES]),
    "linear": (lambda x, y: tf.nn.relu(tf.matmul(x, y)), [floats(13, 40), floats(40, 70)]),
    "recurrence": (recurrence, [floats(3, 6, 24), floats(24, 24)]),
    "running log of sums": (lambda x: tf.math.cumulative_logsumexp(x, 1), [floats(5, 21)]),
    "running log of sums before": (
        lambda x: tf.math.cumulative_logsumexp(x, 0, exclusive=True, reverse=True),
        [floats(6, 3)],
    ),
    "gradient of a reflection": (
        gradient(lambda x: tf.pad(x, [[2, 1], [0, 3]], "REFLECT")),
        [floats(5, 7)],
    ),
    "gradient of a symmetric padding": (
        gradient(lambda x: tf.pad(x, [[2, 1], [4, 3]], "SYMMETRIC")),
        [floats(5, 7)],
    ),
    "running sum": (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), [floats(5, 21)]),
}
DTYPES = ("float32", "float64", "float16", "bfloat16")


def asked(function: Callable[..., Any], arrays: Sequence[np.ndarray], **more: Any) -> exact.Asked:
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arrays]
    return exact.Asked(library_of(function, specs), [a.shape for a in arrays], **more)


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_is_equal_to_its_body(tmp_path: Path, name: str) -> None:
    function, arrays = BODIES[name]
    for tasks in (1, 3):
        assert exact.differences(asked(function, arrays), arrays, tmp_path, tasks) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(tmp_path: Path, dtype: str) -> None:
    own = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    names = ("dense", "layer norm", "attention", "running log of sums", "gradient of a reflection")
    for function, given in map(BODIES.__getitem__, names):
        arrays = [a.astype(own) for a in given]
        assert exact.differences(asked(function, arrays), arrays, tmp_path, 2) == []


@pytest.mark.parametrize("isa", ["x86-64-v2", "x86-64-v3"])
def test_every_level(tmp_path: Path, isa: str) -> None:
    target = backend.Target.of(isa, 2)
    for name in ("dense", "convolution", "layer norm"):
        function, arrays = BODIES[name]
        assert exact.differences(asked(function, arrays, target=target), arrays, tmp_path, 2) == []


def test_packed_weights(tmp_path: Path) -> None:
    function, arrays = BODIES["dense"]
    one = asked(function, arrays, constants=[1])
    assert exact.differences(one, arrays, tmp_path, 2) == []


def test_sizes_that_the_call_knows(tmp_path: Path) -> None:
    function, arrays = BODIES["dense"]
    one = dataclasses.replace(asked(function, arrays), shapes=[("s0", 40), (40, 70)])
    for rows in (1, 13, 17):
        drawn = [floats(rows, 40), arrays[1]]
        assert exact.differences(one, drawn, tmp_path, 2) == []


def test_numbers_that_are_folded_are_those_of_the_body(tmp_path: Path) -> None:
    """TVM multiplies 0.1 by 3 in floats, and gives a number back that it multiplies by 1."""

    def scaled(x: Any) -> Any:
        one, tenth = tf.constant(1.0), tf.constant(0.1)
        return x * (tenth * 3.0) + one * tenth

    x = floats(4, 9)
    assert exact.differences(asked(scaled, [x]), [x], tmp_path, 1) == []


def test_what_is_not_covered_is_told(tmp_path: Path) -> None:
    counts = exact.Counts()
    x = floats(4, 9)
    one = asked(lambda x: x + tf.random.stateless_uniform((4, 9), [1, 2]), [x])
    assert counts.compare(one, [x], tmp_path, 1) == []
    assert counts.equal == 0
    assert "op StatelessRandomUniformV2 is not defined over the ring" in str(counts)


def ran(written: backend.Written, case: Any, folder: Path) -> list[np.ndarray]:
    """What a kernel of floats makes of a case: a function and its arrays."""
    function, arrays = case
    wanted = [np.asarray(y) for y in tf.nest.flatten(function(*map(tf.constant, arrays)))]
    path = Path(tempfile.mkdtemp(dir=folder)) / "kernel.so"
    made = written.generate("altered")
    backend.link(made, path, runtime=None)
    loaded = Loaded(made, path, tasks=1)
    return loaded(arrays, [y.shape for y in wanted], [y.dtype for y in wanted])


def in_place_of_all(
    programs: Callable[..., bytes], wrong: Any, named: Mapping[str, Any], stand_ins: Any
) -> bytes:
    return programs(dict.fromkeys(named, wrong), stand_ins)


@pytest.mark.parametrize("name", ["convolution", "linear", "pool", "running sum"])
def test_a_kernel_with_other_arithmetic_is_not_equal(tmp_path: Path, name: str) -> None:
    """Wherever the same alteration changes a result of floats: not all code runs at all sizes."""
    case = BODIES[name]
    one = asked(*case)
    plain = backend.write(one.library, one.shapes)
    ((symbol, loops),) = plain.module.functions.items()
    right, there = ran(plain, case, tmp_path), places(loops)
    changing = 0
    for number in random.Random(name).sample(range(len(there)), min(ALTERED, len(there))):
        wrong = altered(loops, number)
        module = dataclasses.replace(plain.module, functions={symbol: wrong})
        results = ran(dataclasses.replace(plain, module=module), case, tmp_path)
        if all(np.allclose(*pair, rtol=1e-3) for pair in zip(results, right, strict=True)):
            continue
        changing += 1
        with mock.patch.object(
            algebra, "in_ring", partial(in_place_of_all, algebra.in_ring, wrong)
        ):
            assert exact.differences(one, case[1], tmp_path, 1), there[number]
    assert changing
