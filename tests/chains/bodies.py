"""Random small functions of tensors: chains, reductions, views, casts, several outputs.

A body follows from its seed. Its lines are drawn one after the other and run at once, so that each
is a call that TensorFlow takes. Sizes of one and of none are as usual as others.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

SHAPES: tuple[tuple[int, ...], ...] = (
    (), (1,), (1, 1), (1, 1, 1), (0,), (0, 3), (5,), (16,), (33,), (1, 7), (7, 1), (4, 4), (8, 16),
    (3, 20), (16, 3), (2, 3, 4), (3, 3, 3), (4, 1, 5), (2, 1, 1), (5, 40),
)  # fmt: skip
FLOATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int64")
_OTHERS = ("uint8", "int8", "bool")
_MOST_ELEMENTS = 4000

_UNARY = (
    "-{a}", "tf.abs({a})", "tf.tanh({a})", "tf.sigmoid({a})", "tf.exp(-tf.abs({a}))",
    "tf.square({a})", "tf.sqrt(tf.abs({a}))", "tf.math.rsqrt(tf.abs({a}) + 1)",
    "tf.math.log1p(tf.abs({a}))", "tf.floor({a})", "tf.round({a})", "tf.sign({a})",
    "tf.nn.relu({a})", "tf.math.softplus({a})", "tf.sin({a})", "tf.math.erf({a})", "{a} * 0.5",
    "{a} + 1", "1 - {a}", "tf.nn.elu({a})", "tf.clip_by_value({a}, -1, 1)",
    "tf.exp({a})", "tf.math.expm1({a})", "tf.math.log({a})", "tf.math.log_sigmoid({a})",
    "tf.nn.silu({a})", "tf.nn.gelu({a})", "tf.nn.selu({a})", "tf.nn.softsign({a})",
    "tf.nn.leaky_relu({a})", "tf.nn.relu6({a})", "tf.atan({a})", "tf.asinh({a})", "tf.cosh({a})",
    "tf.math.erfc({a})", "tf.pow(tf.abs({a}), 1.5)", "tf.pow({a}, 3)", "tf.math.reciprocal({a})",
    "tf.math.reciprocal_no_nan({a})", "tf.cos({a})", "tf.sqrt({a})", "tf.sinh({a})",
    "tf.math.is_finite({a})", "tf.math.is_nan({a})", "tf.math.rsqrt({a})", "1 / {a}",
)  # fmt: skip
_BINARY = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / (tf.abs({b}) + 1)", "tf.maximum({a}, {b})",
    "tf.minimum({a}, {b})", "tf.math.squared_difference({a}, {b})", "{a} * {a} - {b} * {b}",
    "tf.where({a} > {b}, {a}, {b})", "tf.math.divide_no_nan({a}, {b})",
    "{a} / {b}", "tf.math.xlogy({a}, tf.abs({b}))", "tf.math.xdivy({a}, {b})", "tf.atan2({a}, {b})",
    "tf.pow(tf.abs({a}), {b})", "{a} % {b}", "{a} // {b}", "tf.pow({a}, {b})",
)  # fmt: skip
_INTEGER = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "tf.maximum({a}, {b})", "-{a}", "tf.abs({a})")
_TRUTH = (
    "tf.logical_and({a}, {b})", "tf.logical_or({a}, {b})", "tf.logical_not({a})", "{a} == {b}",
)  # fmt: skip
_COMPARED = ("{a} > {b}", "{a} <= {b}", "{a} == {b}", "{a} != {b}", "{a} >= {b} * {b}")
_REDUCED = ("tf.reduce_sum", "tf.reduce_mean", "tf.reduce_max", "tf.reduce_min")


@dataclasses.dataclass(frozen=True)
class Body:
    """A function of a few tensors, as its lines.

    Attributes:
        seed: What it follows from.
        lines: Its statements.
        returned: The names of its outputs.
        inputs: The dtypes and shapes of ``x0``, ``x1``, ...
        derived: Whether it returns gradients of its outputs beside them.
    """

    seed: int
    lines: tuple[str, ...]
    returned: tuple[str, ...]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    derived: bool = False

    @property
    def text(self) -> str:
        """The function's source."""
        names = ", ".join(f"x{i}" for i in range(len(self.inputs)))
        told = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in self.inputs)
        lines, results = self.lines, ", ".join(self.returned) + ","
        if self.derived:
            given = f"[{names}]"
            lines = (
                "with tf.GradientTape() as tape:",
                *(f"    {line}" for line in (f"tape.watch({given})", *lines)),
                f"found = tape.gradient([{results}], {given})",
            )
            results += " *(g for g in found if g is not None)"
        told_lines = "".join(f"    {line}\n" for line in (*lines, f"return ({results})"))
        return f"def body({names}):  # {told}\n{told_lines}"

    def function(self) -> Callable[..., Any]:
        """The function."""
        namespace: dict[str, Any] = {"tf": tf}
        exec(compile(self.text, f"<chain {self.seed}>", "exec"), namespace)
        made: Callable[..., Any] = tf.autograph.experimental.do_not_convert(namespace["body"])
        return made


def numbers(dtype: str, shape: Sequence[int], seed: int) -> np.ndarray:
    """Some numbers of a dtype."""
    drawn = np.random.default_rng(seed)
    if dtype == "bool":
        return drawn.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return drawn.integers(0 if dtype[0] == "u" else -5, 6, shape).astype(dtype)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return drawn.normal(size=shape).astype(kind)


def draw(seed: int) -> Body:
    """The body of a seed."""
    return _Drawn(seed).body()


class _Drawn:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._values: dict[str, Any] = {}

    def body(self) -> Body:
        pick = self._random
        dtype, shape = pick.choice(FLOATS), pick.choice(SHAPES)
        inputs = []
        for i in range(pick.randint(1, 3)):
            own = dtype if pick.random() < 0.75 else pick.choice((*FLOATS, *INTEGERS, *_OTHERS))
            size = shape if pick.random() < 0.7 else self._broadcast(shape)
            inputs.append((own, size))
            self._values[f"x{i}"] = tf.constant(numbers(own, size, i))
        wanted = pick.randint(2, 9)
        for _ in range(20 * wanted):
            if len(self._lines) < wanted:
                self._add(f"y{len(self._lines)}", self._drawn())
        names = [name for name in self._values if name.startswith("y")] or ["x0"]
        returned = [names[-1], *pick.sample(names, min(len(names), pick.randint(0, 3)))]
        derived = self._seed % 3 == 0 and all("float" in dtype for dtype, _ in inputs)
        return Body(self._seed, tuple(self._lines), tuple(returned), tuple(inputs), derived)

    def _broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        some = tuple(1 if self._random.random() < 0.4 else d for d in shape)
        return some[self._random.randint(0, len(some)) :]

    def _add(self, name: str, text: str | None) -> None:
        if text is None:
            return
        try:
            value = eval(text, {"tf": tf, **self._values})
        except (tf.errors.OpError, ValueError, TypeError):
            return
        if isinstance(value, tf.Tensor) and value.shape.num_elements() <= _MOST_ELEMENTS:
            self._lines.append(f"{name} = {text}")
            self._values[name] = value

    def _drawn(self) -> str | None:
        """A line, which TensorFlow may refuse."""
        pick = self._random
        # What was made last is read most.
        names = list(self._values)
        a = names[-1 - int(pick.random() ** 2 * len(names))]
        b = pick.choice(names)
        value = self._values[a]
        if pick.random() < 0.12:
            return self._cast(a)
        if pick.random() < 0.35:
            return self._view(a, b)
        if value.dtype == tf.bool:
            chosen = pick.choice((*_TRUTH, "where", "reduced"))
            if chosen == "where":
                return f"tf.where({a}, {b}, {pick.choice(names)})"
            return chosen.format(a=a, b=b) if chosen != "reduced" else self._any(a)
        if pick.random() < 0.2:
            return self._reduced(a)
        if pick.random() < 0.12:
            return pick.choice(_COMPARED).format(a=a, b=b)
        if value.dtype.is_floating:
            return pick.choice(_UNARY if pick.random() < 0.5 else _BINARY).format(a=a, b=b)
        return pick.choice(_INTEGER).format(a=a, b=b)

    def _cast(self, a: str) -> str:
        return f"tf.cast({a}, tf.{self._random.choice((*FLOATS, *INTEGERS, *_OTHERS))})"

    def _axis(self, a: str) -> int:
        return self._random.randrange(self._values[a].shape.rank or 1)

    def _any(self, a: str) -> str:
        return f"tf.reduce_{self._random.choice(['any', 'all'])}({a}, {self._axis(a)})"

    def _reduced(self, a: str) -> str:
        pick = self._random
        axis = pick.choice([self._axis(a), -1, None])
        keep = ", keepdims=True" * (pick.random() < 0.5)
        drawn = pick.random()
        if drawn < 0.1:
            return f"tf.argmax({a}, {axis or 0})"
        if drawn < 0.2:
            return f"tf.cumsum({a}, {axis or 0})"
        if drawn < 0.3:
            return f"tf.nn.softmax({a})"
        if drawn < 0.4:
            return f"tf.reduce_logsumexp({a}, {axis}{keep})"
        return f"{pick.choice(_REDUCED)}({a}, {axis}{keep})"

    def _view(self, a: str, b: str) -> str | None:
        pick = self._random
        shape = self._values[a].shape.as_list()
        axis = self._axis(a)
        cut = ", ".join([":"] * axis + [pick.choice(["1:", ":-1", "::2", "::-1", ":1"])])
        kinds = [
            f"{a}[{cut}]",
            f"tf.expand_dims({a}, {axis})",
            f"tf.squeeze({a})",
            f"tf.transpose({a})",
            f"tf.reshape({a}, {pick.choice([[-1], [*shape, 1], [1, *shape], shape[::-1]])})",
            f"tf.concat([{a}, {b}], {axis})",
            f"tf.stack([{a}, {b}], {axis})",
            f"tf.reverse({a}, [{axis}])",
            f"tf.tile({a}, {[pick.randint(1, 2) for _ in shape]})",
            f"tf.broadcast_to({a}, {[2, *shape]})",
            f"tf.pad({a}, {[[pick.randint(0, 1), pick.randint(0, 2)] for _ in shape]})",
            f"tf.gather({a}, {[0, -1 % (shape[axis] or 1) if shape else 0, 0]}, axis={axis})",
            f"tf.zeros_like({a})",
            f"tf.roll({a}, 1, {axis})",
            f"tf.identity({a})",
        ]
        return pick.choice(kinds)
