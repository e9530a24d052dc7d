"""What `make gpu` checks and times: products, attention, layers, rows, chains, gallery.

Importing this needs NumPy alone, so that a machine without TensorFlow draws the same inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.works.gallery import GALLERY, GalleryWork

Array = npt.NDArray[Any]
Sizes = Mapping[str, int]

_SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 3e38, 1.0, -1.0)


_STEPS = {"fake-quant": 0.031}
"""Of ops that round to steps: numbers halfway may go to either side."""


@dataclass(frozen=True)
class GpuWork:
    """A function of arrays.

    Attributes:
        name: For people.
        function: From tensors to tensors; it imports TensorFlow when it is called.
        shapes: Of the inputs; symbols such as "s0" are sizes of a call.
        dtype: Of float inputs.
        draw: Gives the inputs, floats in float64.
        checked: Sizes at which the results are compared with float64.
        timed: Sizes at which it is timed; they are checked, too.
        tolerance: Largest error, of 1 and of the exact value.
        flops: Operations of a call of some sizes; 0 where memory is what binds it.
        peer: The name of what PyTorch does instead, if it is timed.
        tensor_float_32: Whether float32 may be multiplied as TF32.
        library: Gives a composite op's FunctionDefLibrary; other functions are traced.
    """

    name: str
    function: Callable[..., Any]
    shapes: Sequence[Sequence[int | str]]
    dtype: str
    draw: Callable[[np.random.Generator, Sizes], list[Array]]
    checked: Sequence[Sizes] = ()
    timed: Sizes = field(default_factory=dict)
    tolerance: float = 2e-5
    flops: Callable[[Sizes], float] = lambda _: 0.0
    peer: str = ""
    tensor_float_32: bool = False
    library: Callable[[], Any] | None = None

    @property
    def key(self) -> str:
        """The name as a C identifier."""
        return "".join(c if c.isalnum() else "_" for c in self.name.lower())

    def inputs(self, sizes: Sizes) -> list[Array]:
        """The inputs of a call, floats in float64 and not yet rounded to the dtype."""
        return self.draw(np.random.default_rng(sum(sizes.values())), sizes)


def normal(shapes: Sequence[Sequence[int | str]], *, special: bool = False) -> Any:
    """Give what draws normal numbers; `special` ones among them where there are few."""

    def draw(random: np.random.Generator, sizes: Sizes) -> list[Array]:
        drawn = []
        for shape in shapes:
            array = random.standard_normal([sizes[d] if isinstance(d, str) else d for d in shape])
            if special and array.size < 1 << 20:  # a check: numbers that are computed with care
                array.reshape(-1)[: len(_SPECIAL)] = _SPECIAL[: array.size]
            drawn.append(array)
        return drawn

    return draw


def _work(name: str, function: Any, shapes: Any, dtype: str, **more: Any) -> GpuWork:
    draw = normal(shapes, special=more.pop("special", False))
    return GpuWork(name, function, shapes, dtype, draw, **more)


def dense(x: Any, w: Any, b: Any) -> Any:
    """A dense layer with its activation."""
    import tensorflow as tf

    return tf.nn.relu(x @ w + b)


def _matmul(x: Any, y: Any) -> Any:
    return x @ y


def _attention(q: Any, k: Any, v: Any) -> Any:
    import tensorflow as tf

    scores = tf.matmul(q, k, transpose_b=True) * tf.cast(q.shape[-1] ** -0.5, q.dtype)
    return tf.matmul(tf.nn.softmax(scores), v)


def softmax(x: Any) -> Any:
    """The softmax of each row."""
    import tensorflow as tf

    return tf.nn.softmax(x)


def _layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    import tensorflow as tf

    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + offset


def _gated(x: Any, y: Any) -> Any:
    import tensorflow as tf

    return tf.tanh(x) * tf.sigmoid(y) + x


def _products() -> list[GpuWork]:
    def flops(sizes: Sizes) -> float:
        return 2.0 * sizes["s0"] * 4096 * 4096

    works = [
        _work(
            f"dense 4096, {label}", dense, [["s0", 4096], [4096, 4096], [4096]], dtype,
            checked=[{"s0": 1}, {"s0": 70}], timed={"s0": 4096}, tolerance=tolerance, flops=flops,
            peer="dense", tensor_float_32=label == "TF32",
        )
        for label, dtype, tolerance in (
            ("float16", "float16", 0.06), ("bfloat16", "bfloat16", 0.5),
            ("TF32", "float32", 0.25), ("float32", "float32", 2e-3),
        )
    ]  # fmt: skip
    ragged = _work(
        "ragged product, float16", _matmul, [["s0", "s1"], ["s1", "s2"]], "float16",
        checked=[{"s0": 1, "s1": 1, "s2": 1}, {"s0": 130, "s1": 77, "s2": 65}],
        timed={"s0": 1000, "s1": 1001, "s2": 999}, tolerance=0.04,
        flops=lambda sizes: 2.0 * math.prod(sizes.values()), peer="matmul",
    )  # fmt: skip
    return [*works, ragged]


def _attentions() -> list[GpuWork]:
    shape = [16, "s0", 64]
    return [
        _work(
            f"attention of 16 heads of 64, {label}", _attention, [shape] * 3, dtype,
            checked=[{"s0": 1}, {"s0": 100}], timed={"s0": 2048}, tolerance=tolerance,
            flops=lambda sizes: 4.0 * 16 * 64 * sizes["s0"] ** 2, peer="attention",
            tensor_float_32=True,
        )
        for label, dtype, tolerance in (
            ("float16", "float16", 4e-3), ("bfloat16", "bfloat16", 3e-2), ("TF32", "float32", 4e-3)
        )
    ]  # fmt: skip


def _steps(x: Any, step: Callable[..., Any], *states: Any) -> Any:
    """The first state after each step over x [batch, steps, inputs], and all after the last."""
    import tensorflow as tf

    count = tf.shape(x)[1]
    rows = tf.TensorArray(x.dtype, size=count, element_shape=states[0].shape)

    def body(t: Any, rows: Any, *now: Any) -> Any:
        after = step(x[:, t], *now)
        return (t + 1, rows.write(t, after[0]), *after)

    _, rows, *last = tf.while_loop(lambda t, *_: t < count, body, (0, rows, *states))
    return (tf.transpose(rows.stack(), [1, 0, 2]), *last)


def lstm(x: Any, k: Any, r: Any, b: Any) -> Any:
    """An LSTM layer, with gates in the order i, f, g, o."""
    import tensorflow as tf

    def step(x: Any, h: Any, c: Any) -> Any:
        i, f, g, o = tf.split(x @ k + h @ r + b, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    zeros = tf.zeros([tf.shape(x)[0], r.shape[0]], x.dtype)
    return _steps(x, step, zeros, zeros)


def gru(x: Any, k: Any, r: Any, b: Any) -> Any:
    """A GRU layer that resets what h gives, with gates in the order r, z, n."""
    import tensorflow as tf

    def step(x: Any, h: Any) -> Any:
        own, given = tf.split(x @ k + b, 3, axis=1), tf.split(h @ r, 3, axis=1)
        reset, update = (tf.sigmoid(own[i] + given[i]) for i in range(2))
        new = tf.tanh(own[2] + reset * given[2])
        return ((1.0 - update) * new + update * h,)

    return _steps(x, step, tf.zeros([tf.shape(x)[0], r.shape[0]], x.dtype))


def recurrent(units: int, gates: int) -> Any:
    """Give what draws a layer's input and weights, of a size that leaves the gates half open."""
    wide = gates * units
    shapes: list[list[int | str]] = [["s0", "s1", units], [units, wide], [units, wide], [wide]]

    def draw(random: np.random.Generator, sizes: Sizes) -> list[Array]:
        x, *weights = normal(shapes)(random, sizes)
        return [x, *(weight / math.sqrt(units) for weight in weights)]

    return shapes, draw


def _times_steps(operations: float, sizes: Sizes) -> float:
    return operations * sizes["s0"] * sizes["s1"]


def _layers() -> list[GpuWork]:
    units, found = 512, []
    for name, function, gates, dtype, tolerance in (
        ("LSTM", lstm, 4, "float32", 1e-4), ("LSTM", lstm, 4, "float16", 2e-2),
        ("GRU", gru, 3, "float32", 1e-4),
    ):  # fmt: skip
        shapes, draw = recurrent(units, gates)
        operations = 4.0 * gates * units**2  # of a step of one sequence
        work = GpuWork(
            f"{name} of {units} units, {dtype}", function, shapes, dtype, draw,
            checked=[{"s0": 1, "s1": 3}, {"s0": 5, "s1": 2}], timed={"s0": 32, "s1": 128},
            tolerance=tolerance, peer=name.lower(),
            flops=partial(_times_steps, operations),
        )  # fmt: skip
        found.append(work)
    return found


def _rows_and_chains() -> list[GpuWork]:
    rows, row = [["s0", 4096]], [4096]
    checked, timed = [{"s0": 1}, {"s0": 5}], {"s0": 16384}
    found = []
    for dtype, tolerance in (("float32", 2e-5), ("float16", 2e-3)):
        more = {"checked": checked, "timed": timed, "tolerance": tolerance}
        found += [
            _work(f"softmax, {dtype}", softmax, rows, dtype, peer="softmax", **more),
            _work(
                f"layer norm, {dtype}", _layer_norm, [*rows, row, row], dtype, peer="layer_norm",
                **more,
            ),
            _work(
                f"gated, {dtype}", _gated, rows * 2, dtype, peer="gated", special=True, **more
            ),
        ]  # fmt: skip
    return found


def _of_gallery(name: str, work: GalleryWork) -> GpuWork:
    """An op of the gallery at the size at which it is timed; lists among its inputs are empty."""
    drawn = work.draw(np.random.default_rng(0))

    def call_of(arrays: Sequence[Any]) -> list[Any]:
        given = iter(arrays)
        return [[] if isinstance(x, list) else next(given) for x in drawn]

    def function(*arrays: Any) -> Any:
        import tensorflow as tf

        op = work.op()
        values = {spec.name: spec.default for spec in op.schema.attrs} | work.attrs
        return tf.nest.flatten(op.python_function(*call_of(arrays), **values))

    def library() -> Any:
        import tensorflow as tf

        arrays = [np.asarray(x) for x in drawn if not isinstance(x, list)]
        types = [tf.float32 if x.dtype.kind == "f" else x.dtype for x in arrays]
        specs = [tf.TensorSpec(x.shape, t) for x, t in zip(arrays, types, strict=True)]
        return work.op().expand(*call_of(specs), **work.attrs)

    def draw(random: np.random.Generator, _: Sizes) -> list[Array]:
        return [np.asarray(x) for x in work.draw(random) if not isinstance(x, list)]

    shapes = [[*np.shape(x)] for x in drawn if not isinstance(x, list)]
    tolerance = _STEPS.get(name, 2e-4)
    return GpuWork(
        f"gallery: {name}", function, shapes, "float32", draw, tolerance=tolerance, library=library
    )


def works() -> list[GpuWork]:
    """All of them."""
    gallery = [_of_gallery(name, work) for name, work in GALLERY.items()]
    return [*_products(), *_attentions(), *_layers(), *_rows_and_chains(), *gallery]
