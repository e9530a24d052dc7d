"""What programs that share memory run: with our kernels, and by TensorFlow alone.

A side holds the objects of one program by name: tensors, variables, and NumPy's arrays. Both sides
of a program do the same to objects of their own.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from composite import Composite

SIZE, ROWS, PARTS = 32, 8, 4  # of weights, of what they are multiplied with, of tensors in parts
_ALIGNED = 64  # bytes: TensorFlow shares an array that lies so


@cache
def op_of(number: int) -> Any:
    """A layer of whose eager calls nothing is known."""

    @Composite(f"SharingDense{number}", inputs=["x: float", "w: float"], outputs=["y: float"])
    def dense(x, w):
        return tf.tanh(tf.matmul(x, w))

    return dense


@cache
def graph_of(number: int) -> Any:
    """A function that gets the weights of the layer as an argument."""
    return tf.function(op_of(number), autograph=False)


def _gradient(x: Any, w: Any) -> Any:
    return tf.matmul(x, tf.tanh(tf.matmul(x, w)), transpose_a=True)


def descend(w: tf.Variable, x: Any) -> None:
    """A step of plain descent."""
    w.assign_sub(_gradient(x, w) * 0.01)


def descend_with_momentum(w: tf.Variable, speed: tf.Variable, x: Any) -> None:
    """A step of another optimizer."""
    speed.assign_add(_gradient(x, w) * 0.5 - speed * 0.25)
    w.assign_sub(speed * 0.01)


def follow(target: tf.Variable, online: tf.Variable) -> None:
    """A soft update of a target network, an average of weights."""
    target.assign_add((online - target) * 0.25)


def layers(x: Any, first: tf.Variable, second: tf.Variable) -> Any:
    """Two layers of one model."""
    return tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, first)), second))


STEPS = (descend, descend_with_momentum, follow, layers)


def aligned(shape: tuple[int, ...]) -> Any:
    """An array of NumPy's where TensorFlow would share it."""
    count = int(np.prod(shape)) * 4
    raw = np.zeros(count + _ALIGNED, np.uint8)
    start = -raw.ctypes.data % _ALIGNED
    return raw[start : start + count].view(np.float32).reshape(shape)


class Side:
    """One of the two, and its objects."""

    def __init__(self, ours: bool) -> None:
        """With our kernels, or without."""
        self.ours = ours
        self.op, self.graph = op_of(0), graph_of(0)
        self.functions: dict[str, Any] = {
            step.__name__: tf.function(step, autograph=False) for step in STEPS
        }
        self.objects: dict[str, Any] = {}

    def dense(self, x: Any, w: Any) -> Any:
        """An eager call of one layer."""
        return self.op(x, w) if self.ours else self.op.python_function(x, w)

    def dense_in_graph(self, x: Any, w: Any) -> Any:
        """A call of a function of one layer."""
        return self.graph(x, w) if self.ours else self.dense(x, w)

    def call(self, name: str, *arguments: Any) -> Any:
        """A call of a function in regions."""
        with composite.options(regions=True) if self.ours else nullcontext():
            return self.functions[name](*arguments)

    def restore(self, variable: tf.Variable, value: Any, folder: Path) -> None:
        """By a checkpoint of another variable."""
        path = tf.train.Checkpoint(v=tf.Variable(value)).write(str(folder / f"{self.ours}"))
        tf.train.Checkpoint(v=variable).read(path).assert_consumed()

    def values(self) -> dict[str, Any]:
        """What all objects hold."""
        return {name: _value(one).copy() for name, one in self.objects.items()}


def _value(one: Any) -> Any:
    return one if isinstance(one, np.ndarray) else one.numpy()


def train(side: Side, times: int = 24) -> None:
    """Calls each function of a side, so that there are kernels for it."""
    draws = tf.random.stateless_normal([ROWS, SIZE], [1, 1])
    first, second = (tf.Variable(tf.zeros([SIZE, SIZE])) for _ in range(2))
    for _ in range(3):
        for _ in range(times):
            side.call("descend", first, draws)
            side.call("descend_with_momentum", first, second, draws)
            side.call("follow", first, second)
            side.call("layers", draws, first, second)
        for _ in range(times):
            side.call("layers", draws, first, second)
        composite.wait()
