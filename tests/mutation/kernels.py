"""The kernels that are altered: of each strategy one or several, small, for one level of CPUs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.kernels import shapes as classes
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.exact import gradient
from tests.compiler.tvm.standing import over_ring

LEVEL = "x86-64-v3"
TARGET = backend.Target.of(LEVEL, 2)
NARROW = ("float16", "bfloat16")
_BEYOND: tuple[Mapping[str, int], ...] = (
    {},
    {"s0": 1},
    {"s0": 5, "s1": 19},
    {"s0": 16, "s1": 33},
    {"s0": 93},
)
"""Sizes beside those of the check, at which results are compared with the unaltered kernel's."""


@dataclass(frozen=True)
class Subject:
    """A function, the class of its calls, and which of its inputs are weights."""

    function: Callable[..., Any]
    shapes: Sequence[Sequence[int | str]]
    dtypes: Sequence[str] = ()
    constants: Sequence[int] = ()
    least: int = 8  # of the dims that integers are places of

    @cached_property
    def names(self) -> list[str]:
        """The sizes that vary."""
        return classes.symbols([tuple(s) for s in self.shapes])

    @cached_property
    def all_dtypes(self) -> list[Any]:
        """One an input."""
        given = [*self.dtypes, *["float32"] * (len(self.shapes) - len(self.dtypes))]
        return [ml_dtypes.bfloat16 if d == "bfloat16" else np.dtype(d) for d in given]

    def library(self, shapes: Sequence[Sequence[int | str]] | None = None) -> Any:
        """The function of inputs of the class, or of known shapes."""
        dims = self.shapes if shapes is None else shapes
        specs = [
            tf.TensorSpec([d if isinstance(d, int) else None for d in shape], dtype)
            for shape, dtype in zip(dims, self.all_dtypes, strict=True)
        ]
        return library_of(self.function, specs)

    @cached_property
    def written(self) -> backend.Written:
        """The loops."""
        return backend.write(self.library(), self.shapes, target=TARGET, constants=self.constants)

    @cached_property
    def named(self) -> dict[str, Any]:
        """The functions of the loops, with elementary functions as calls by their names."""
        module = self.written.module
        return {
            name: f.with_body(over_ring(f.body, module.stand_ins))
            for name, f in module.functions.items()
        }

    @property
    def minimums(self) -> Mapping[str, int]:
        """The least sizes that the kernel is for."""
        return self.written.plan.function.minimums

    def checked(self) -> list[list[tuple[int, ...]]]:
        """The shapes that the numeric check of a new kernel takes."""
        least = [self.minimums.get(name, 0) for name in self.names]
        cases = [classes.samples(self.names, (), least, ())]
        if self.names:
            cases.append(classes.odd_samples(self.names, least, ()))
        return [self.at(sizes) for sizes in cases]

    def telling(self) -> list[list[tuple[int, ...]]]:
        """The shapes that it takes as well, at which other branches of the kernel run."""
        found = self.written.telling()
        return [self.at(dict(zip(self.names, values, strict=True))) for values in found]

    def beyond(self) -> list[list[tuple[int, ...]]]:
        """Other shapes of the class."""
        found = []
        for sizes in _BEYOND if self.names else _BEYOND[:1]:
            values = {n: sizes.get(n, 300) for n in self.names}
            found.append(self.at({n: max(v, self.minimums.get(n, 0)) for n, v in values.items()}))
        return found

    def at(self, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The shapes of a call."""
        return classes.substitute([tuple(s) for s in self.shapes], sizes)

    def drawn(self, shapes: Sequence[tuple[int, ...]], seed: int) -> list[np.ndarray]:
        """Numbers and places."""
        random = np.random.default_rng(seed)
        return [
            random.integers(0, self.least, shape).astype(dtype)
            if np.dtype(dtype).kind == "i"
            else random.standard_normal(shape).astype(dtype)
            for shape, dtype in zip(shapes, self.all_dtypes, strict=True)
        ]


def _layer_norm(x: Any) -> Any:
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 4.0), v)


def _lstm(x: Any, h: Any, c: Any, w: Any, u: Any) -> Any:
    i, f, g, o = tf.split(tf.matmul(x, w) + tf.matmul(h, u), 4, 1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


def _recurrence(x: Any, w: Any) -> Any:
    state = tf.zeros([4, 48])
    for t in tf.range(3):
        state = tf.tanh(tf.matmul(state, w) + x[t])
    return state


def _of_team(x: Any, w: Any) -> Any:
    state = tf.zeros([32, 128])
    for t in tf.range(3):
        state = tf.tanh(tf.matmul(state, w) + x[t])
    return state


def _dense(x: Any, w: Any, b: Any) -> Any:
    return tf.nn.gelu(tf.matmul(x, w) + b)


def _summed(x: Any, rows: Any) -> Any:
    return tf.math.unsorted_segment_sum(x, rows, 9)


SUBJECTS = {
    "elementwise": Subject(
        lambda x, b: tf.maximum(tf.tanh(x) * b - 0.5, x), [("s0", "s1"), ("s1",)]
    ),
    "piecewise": Subject(lambda x: tf.where(x > 0.25, x * 3.0, tf.nn.elu(x)), [("s0", 37)]),
    "transpose": Subject(lambda x: tf.transpose(x) + 1.0, [("s0", "s1")]),
    "slice and concat": Subject(
        lambda x, y: tf.concat([x[:, 3:], y], 1) * y[:, :1], [("s0", 40), ("s0", 21)]
    ),
    "product": Subject(
        lambda x, w, b: tf.nn.relu(tf.matmul(x, w, transpose_b=True) + b),
        [("s0", 40), (24, 40), (24,)],
    ),
    "packed product": Subject(_dense, [("s0", 24), (24, 70), (70,)], constants=(1,)),
    "product of known sizes": Subject(tf.matmul, [(13, 20), (20, 30)]),
    "dot products": Subject(lambda x, w: tf.linalg.matvec(w, x), [(70,), ("s0", 70)]),
    "row by matrix": Subject(tf.matmul, [(1, 50), (50, 70)]),
    "products of batches": Subject(tf.matmul, [("s0", 5, 9), ("s0", 9, 11)]),
    "softmax": Subject(tf.nn.softmax, [("s0", 40)]),
    "layer norm": Subject(_layer_norm, [("s0", 100)]),
    "gradient of layer norm": Subject(gradient(_layer_norm), [("s0", 36)]),
    "attention": Subject(_attention, [(1, 20, 16)] * 3),
    "sum of columns": Subject(lambda x: tf.reduce_sum(x, 0), [("s0", "s1")]),
    "sum of all": Subject(lambda x: tf.reduce_sum(x * x), [("s0", 33)]),
    "largest": Subject(lambda x: tf.reduce_max(x, 1), [("s0", 50)]),
    "place of the largest": Subject(lambda x: tf.argmax(x, 1), [("s0", 21)]),
    "running sum": Subject(lambda x: tf.cumsum(x, 1, exclusive=True), [("s0", 21)]),
    "gather": Subject(
        lambda x, i: tf.gather(x, i) * 2.0, [(10, "s1"), ("s0",)], ["float32", "int32"]
    ),
    "scatter": Subject(_summed, [("s0", 20), ("s0",)], ["float32", "int32"]),
    "convolution": Subject(
        lambda x, f: tf.nn.relu(tf.nn.conv2d(x, f, 1, "SAME")), [("s0", 7, 9, 5), (3, 3, 5, 20)]
    ),
    "packed convolution": Subject(
        lambda x, f: tf.nn.conv2d(x, f, 2, "SAME"), [(2, 9, 9, 8), (3, 3, 8, 24)], constants=(1,)
    ),
    "depthwise convolution": Subject(
        lambda x, f: tf.nn.depthwise_conv2d(x, f, (1, 1, 1, 1), "SAME"),
        [("s0", 7, 7, 12), (3, 3, 12, 1)],
    ),
    "gradient of filters": Subject(
        gradient(lambda x, f: tf.nn.conv2d(x, f, 1, "VALID")), [(2, 6, 7, 4), (3, 3, 4, 10)]
    ),
    "largest of windows": Subject(lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), [("s0", 9, 9, 12)]),
    "mean of windows": Subject(lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), [("s0", 8, 8, 12)]),
    "cell": Subject(_lstm, [("s0", 16), ("s0", 24), ("s0", 24), (16, 96), (24, 96)]),
    "packed cell": Subject(
        _lstm, [("s0", 16), ("s0", 24), ("s0", 24), (16, 96), (24, 96)], constants=(3, 4)
    ),
    "recurrence": Subject(tf.function(_recurrence), [(3, 4, 48), (48, 48)]),
    "recurrence of a team": Subject(tf.function(_of_team), [(3, 32, 128), (128, 128)]),
    "quotients of integers": Subject(
        lambda a, b: a // (b + 1), [("s0", "s1"), ("s1",)], ["int32", "int32"]
    ),
}
_OF_NARROW = (
    "elementwise",
    "softmax",
    "layer norm",
    "packed product",
    "sum of columns",
    "dot products",
)
SUBJECTS |= {
    f"{name} of {dtype}": replace(one, dtypes=[dtype] * len(one.shapes))
    for (name, one), dtype in itertools.product(
        [(name, SUBJECTS[name]) for name in _OF_NARROW], NARROW
    )
}
