"""Schedules as values and texts; the schedules of many stages on machines that need not be here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.machine import FAMILIES
from composite.compiler.tvm.schedule import Schedule
from composite.compiler.tvm.target import Target
from tests.compiler.tvm.conftest import library_of

MACHINES = {
    "any v2, 1 core": Target.of("x86-64-v2", 1),
    "zen2, 8 cores": Target.of("x86-64-v3", 8, FAMILIES["zen2"]),
    "zen4, 2 cores": Target.of("x86-64-v4-bf16", 2, FAMILIES["zen4"]),
    "sapphirerapids, 32 cores": Target.of("x86-64-v4-bf16", 32, FAMILIES["sapphirerapids"]),
}
Shapes = tuple[tuple[int | str, ...], ...]


class Asked(NamedTuple):
    """A kernel: a function of tensors, their shapes, and which of them are constant."""

    function: Callable[..., Any]
    shapes: Shapes
    constants: tuple[int, ...] = ()
    dtype: str = "float32"

    def __str__(self) -> str:
        shapes = ", ".join("x".join(map(str, shape)) or "scalar" for shape in self.shapes)
        constant = f", constant {', '.join(map(str, self.constants))}" if self.constants else ""
        dtype = "" if self.dtype == "float32" else f", {self.dtype}"
        return f"{self.function.__name__}({shapes}{constant}{dtype})"

    def written(self, target: Target, choices: Any = None) -> backend.Written:
        """Its loops on a machine."""
        specs = [
            tf.TensorSpec([d if isinstance(d, int) else None for d in shape], self.dtype)
            for shape in self.shapes
        ]
        library = library_of(self.function, specs)
        return backend.write(
            library, self.shapes, target=target, constants=self.constants, choices=choices or {}
        )


def dense(x: Any, w: Any, b: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w) + b)


def dense_transposed(x: Any, w: Any, b: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w, transpose_b=True) + b)


def gated(x: Any, w: Any, b: Any) -> Any:
    y = tf.matmul(x, w) + b
    return y * tf.sigmoid(y)


def two_layers(x: Any, w: Any, b: Any) -> Any:
    h = tf.tanh(tf.matmul(x, w) + b)
    return tf.nn.softmax(tf.matmul(h, w, transpose_b=True))


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.125)
    return tf.matmul(scores, v)


def softmax(x: Any) -> Any:
    return tf.nn.softmax(x)


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * g + b


def normalized_dense(x: Any, g: Any, b: Any, w: Any) -> Any:
    return tf.matmul(layer_norm(x, g, b), w)


def gelu(x: Any) -> Any:
    return tf.nn.gelu(x)


def column_sums(x: Any) -> Any:
    return tf.reduce_sum(x, 0)


def running_sum(x: Any) -> Any:
    return tf.cumsum(tf.exp(x), axis=1)


def convolution(x: Any, w: Any, b: Any) -> Any:
    return tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME") + b)


def depthwise(x: Any, w: Any) -> Any:
    return tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")


def pool(x: Any) -> Any:
    return tf.nn.max_pool2d(x, 2, 2, "VALID")


def step(w: Any, x: Any, y: Any) -> Any:
    return w - 0.1 * tf.matmul(x, tf.matmul(x, w) - y, transpose_a=True)


def _asked() -> Iterator[Asked]:
    for m, k, n in ((1, 320, 320), (3, 77, 500), (5, 320, 128), (24, 768, 768), (33, 17, 129),
                    (128, 512, 512), (512, 1024, 64)):  # fmt: skip
        yield Asked(dense, ((m, k), (k, n), (n,)))
        yield Asked(dense, ((m, k), (k, n), (n,)), (1,))
    for m, k, n in ((1, 1024, 1024), (19, 320, 320), (36, 1057, 300), (77, 378, 200)):
        yield Asked(dense_transposed, ((m, k), (n, k), (n,)))
        yield Asked(dense_transposed, ((m, k), (n, k), (n,)), (1,))
    yield Asked(dense, (("s0", 256), (256, 512), (512,)), (1,))
    yield Asked(dense, ((64, 256), (256, 512), (512,)), dtype="bfloat16")
    yield Asked(dense, ((64, 256), (256, 512), (512,)), dtype="float64")
    yield Asked(gated, ((256, 128), (128, 384), (384,)), (1,))
    yield Asked(two_layers, ((4096, 64), (64, 64), (64,)))
    yield Asked(attention, ((8, 128, 64), (8, 128, 64), (8, 128, 64)))
    yield Asked(attention, ((1, 12, 80), (1, 300, 80), (1, 300, 80)))
    for shape in ((2000, 1024), (8, 100), (4, 40000), ("s0", 512)):
        yield Asked(softmax, (shape,))
    for rows, width in ((128, 768), (1, 4096), (3000, 50)):
        yield Asked(layer_norm, ((rows, width), (width,), (width,)))
    yield Asked(normalized_dense, ((2048, 256), (256,), (256,), (256, 256)))
    yield Asked(gelu, ((300, 1000),))
    yield Asked(gelu, ((17,),))
    yield Asked(column_sums, ((1000, 300),))
    yield Asked(column_sums, ((1000, 3),))
    yield Asked(running_sum, ((40, 1000),))
    for n, hw, channels, filters in ((32, 14, 32, 64), (1, 56, 3, 16), (8, 7, 128, 128)):
        shapes = ((n, hw, hw, channels), (3, 3, channels, filters), (filters,))
        yield Asked(convolution, shapes)
    yield Asked(depthwise, ((4, 28, 28, 96), (3, 3, 96, 1)))
    yield Asked(pool, ((8, 28, 28, 64),))
    yield Asked(step, ((128, 10), (64, 128), (64, 10)))


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_schedules_of_many_stages(name: str, golden: Callable[[str, str], None]) -> None:
    target = MACHINES[name]
    text = "".join(f"{one}\n{_schedule(one, target)}\n\n" for one in _asked())
    golden(text, f"schedules_{target.machine.name}.txt")


def _schedule(asked: Asked, target: Target) -> str:
    try:
        return str(asked.written(target).schedule)
    except backend.NotCovered as reason:
        return f"no kernel: {reason}"


@pytest.mark.parametrize("name", MACHINES)
def test_a_printed_schedule_gives_the_same_loops(name: str) -> None:
    target = MACHINES[name]
    asked = Asked(two_layers, ((512, 96), (96, 96), (96,)))
    default = asked.written(target)
    knob = next(knob for knob in default.knobs if len(knob.candidates) > 1)
    other = next(value for value in knob.candidates if value != knob.default)
    changed = asked.written(target, {knob.name: other})
    for written in (default, changed):
        read = Schedule.parse(str(written.schedule))
        assert read == written.schedule
        assert read.choices == written.choices
        assert asked.written(target, read.choices).digest == written.digest
    assert default.schedule != changed.schedule


@pytest.mark.parametrize(
    "line",
    ["gemm: a=1", "0 gemm a=1", "0 gemm: a", "0 gemm: a=1 b", "0 gemm: a=1.5", "0 gemm: a='x'"],
)
def test_a_line_that_is_none_of_a_schedule(line: str) -> None:
    with pytest.raises(ValueError, match="is no line of a schedule"):
        Schedule.parse(line)
