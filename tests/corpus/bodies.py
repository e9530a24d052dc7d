"""Bodies made of calls of TensorFlow's functions: changed calls of the library's tests, chained.

A body follows from its seed. It is one call or two, one after the other, with something small in
front of them, behind and between; its inputs are those of the call in other sizes, dtypes and
values (values.py). TensorFlow takes every body that is drawn.

Not for: Python's statements (tests/fuzz draws these).
"""

from __future__ import annotations

import dataclasses
import functools
import linecache
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from composite.checking.oracle import flat
from tests.compiler.library.variations import DTYPES, KNOWN, variations
from tests.corpus import values

_NAMES = "xyz"
_TYPE = "{float, double, half, bfloat16}"
_MOST_ELEMENTS = 1 << 14  # of a result

# What an input goes through; most go through nothing.
_BEFORE = (
    *("{n} * 2", "{n} + 1", "-{n}", "tf.abs({n})", "{n}[::-1]", "{n} * {n}", "tf.maximum({n}, 0)"),
    *("tf.tanh({n})", "tf.sigmoid({n})", "tf.exp({n})", "tf.square({n})", "tf.nn.relu({n})"),
    *("{n} - tf.reduce_mean({n}, axis=-1, keepdims=True)", "tf.concat([{n}[1:], {n}[:1]], axis=0)"),
    *("tf.where({n} > 0, {n}, -2 * {n})", "tf.minimum({n}, {n}[:1])", "tf.cumsum({n}, axis=0)"),
)

# What a result goes through.
_AFTER = (
    *("r + r", "tf.nn.relu(r)", "tf.tanh(r)", "tf.square(r)", "tf.reduce_sum(r, axis=-1)", "r * r"),
    *("tf.reduce_mean(r)", "tf.reduce_max(r, axis=-1, keepdims=True) - r", "tf.transpose(r)"),
    *("tf.concat([r, r], axis=0)", "r[..., :1] * r", "tf.exp(-tf.abs(r))", "tf.reshape(r, [-1])"),
    *("tf.cumsum(r, axis=-1)", "tf.nn.softmax(r)", "tf.where(r > 0, r, tf.zeros_like(r))"),
    *("tf.stack([r, 2 * r], axis=-1)", "tf.cast(r, tf.float32)", "tf.sqrt(tf.abs(r))"),
    *("tf.math.rsqrt(tf.abs(r) + 1)", "tf.reverse(r, [0])", "r // 2", "r % 3", "tf.argmax(r, -1)"),
    *("r / tf.reduce_sum(r, axis=-1, keepdims=True)", "tf.math.log1p(tf.abs(r))", "(r, r + 1)"),
    *("tf.matmul(r, r, transpose_b=True)", "tf.sort(r)", "tf.reduce_prod(r, axis=0)", "tf.sign(r)"),
    *("tf.gather(r, [0, 0], axis=-1)", "tf.pad(r, [[0, 1]] * len(r.shape))", "tf.math.erf(r)"),
)

_CONVOLUTIONS = r"conv|dilation2d|erosion2d"


@dataclasses.dataclass(frozen=True)
class Body:
    """A function of a few tensors, and one call of it.

    Attributes:
        seed: What it follows from.
        lines: Its text, without the line with its name.
        inputs: The arrays that it is called with.
        label: What was changed in these.
    """

    seed: int
    lines: tuple[str, ...]
    inputs: tuple[Any, ...]
    label: str

    @property
    def text(self) -> str:
        """A module with the body."""
        parameters = ", ".join(_NAMES[: len(self.inputs)])
        return "\n".join([f"def body({parameters}):", *(f"    {x}" for x in self.lines), ""])

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """The body in Python, whose source can be found."""
        file = f"<corpus {self.seed}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"tf": tf, "np": np, "__name__": f"corpus_{self.seed}"}
        exec(compile(self.text, file, "exec"), namespace)
        body: Callable[..., Any] = namespace["body"]
        return body

    def op(self) -> Any:
        """The op of the body; generic in the dtype of its floating inputs, if it can be."""
        ours = {x.dtype for x in self._tensors() if x.dtype.is_floating}
        results = [y.dtype.name for y in flat(self.function(*self._tensors()))]
        generic = self._generic(results) if len(ours) == 1 else None
        inputs = [x.dtype.name for x in self._tensors()]
        if generic is not None:
            inputs = ["T" if x.dtype.is_floating else x.dtype.name for x in self._tensors()]
        declare = composite.Composite(
            f"Corpus{self.seed}",
            inputs=[f"{name}: {kind}" for name, kind in zip(_NAMES, inputs, strict=False)],
            derived_attrs=[f"T: {_TYPE}"] if generic is not None else [],
            outputs=[f"o{i}: {kind}" for i, kind in enumerate(generic or results)],
        )
        return declare(self.function)

    def _tensors(self, dtype: Any = None) -> list[Any]:
        tensors = [tf.constant(x) for x in self.inputs]
        return [tf.cast(x, dtype) if dtype and x.dtype.is_floating else x for x in tensors]

    def _generic(self, results: Sequence[str]) -> list[str] | None:
        """The dtypes of the results, T where they follow the inputs'; None for one dtype alone."""
        found = []
        for dtype in (tf.float64, tf.float32):
            try:
                found.append([y.dtype for y in flat(self.function(*self._tensors(dtype)))])
            except Exception:  # noqa: BLE001 - whatever it is, it takes another dtype alone
                return None
        both = [tf.float64, tf.float32]
        follows = [list(pair) == both for pair in zip(*found, strict=True)]
        return ["T" if f else name for f, name in zip(follows, results, strict=True)]


def draw(seed: int) -> Body:
    """The body of a seed."""
    random_ = random.Random(seed)
    while True:
        body = _drawn(seed, random_)
        if body is not None and _taken(body):
            return body


@functools.cache
def _calls() -> list[tuple[str, str, list[Any]]]:
    """The calls that may be drawn: text, what was changed, inputs."""
    return [
        call
        for call in variations()
        if call[1] not in DTYPES  # of one input alone; values.py changes all
        and all(x.dtype.kind not in "USO" for x in call[2])
        and not any(re.match(known, call[0]) for known, _, _ in KNOWN)
        and not re.search(r"tf\.(io|strings|data|signal)\b|random", call[0])
    ]


@functools.cache
def _unary() -> list[str]:
    """Calls of one floating tensor: what a result can be given to."""
    return sorted(
        {
            text
            for text, _, inputs in _calls()
            if len(inputs) == 1 and inputs[0].dtype.kind == "f" and _parts(text, inputs) == 0
        }
    )


def _drawn(seed: int, random_: random.Random) -> Body | None:
    call, _, given = random_.choice(_calls())
    parts = _parts(call, given)
    if parts is None:
        return None
    lines = []
    for name in _NAMES[: len(given)]:
        if random_.random() < 0.3:
            lines.append(f"{name} = {random_.choice(_BEFORE).format(n=name)}")
    lines.append(f"r = {call}")
    if parts:
        lines.append(f"r = r[{random_.randrange(parts)}]")
    if random_.random() < 0.4:
        lines += [f"r = {random_.choice(_AFTER)}"] * (random_.random() < 0.4)
        lines.append("r = " + re.sub(r"\bx\b", "r", random_.choice(_unary())))
    last = random_.choice(_AFTER) if random_.random() < 0.6 else "r"
    if last == "r" and random_.random() < 0.2:
        last = f"r + {random_.choice(_NAMES[: len(given)])}"
    inputs, label = values.changed(given, np.random.default_rng(random_.getrandbits(32)))
    return Body(seed, (*lines, f"return {last}"), tuple(inputs), label)


def _parts(call: str, inputs: Sequence[Any]) -> int | None:
    """How many tensors a call gives as a list, 0 for one by itself; None if TensorFlow refuses."""
    named = dict(zip(_NAMES, map(tf.constant, inputs), strict=False))
    try:
        result = eval(call, {"tf": tf, "np": np}, named)
    except Exception:  # noqa: BLE001 - whatever TensorFlow refuses is not drawn
        return None
    return len(result) if isinstance(result, (list, tuple)) else 0


def _taken(body: Body) -> bool:
    """Whether TensorFlow takes the body, eager and traced, and gives numbers, not too many."""
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in body.inputs]
    if re.search(_CONVOLUTIONS, body.text) and any(not x.size for x in body.inputs):
        return False  # TensorFlow's gradients of these leave the memory as it was
    try:
        results = flat(body.function(*map(tf.constant, body.inputs)))
        tf.function(body.function, autograph=False).get_concrete_function(*specs)
        tensors = [tf.convert_to_tensor(y) for y in results]
    except Exception:  # noqa: BLE001 - whatever TensorFlow refuses is not drawn
        return False
    sizes = [y.shape.num_elements() for y in tensors]
    return bool(sizes) and max(sizes) <= _MOST_ELEMENTS and all(map(_is_number, tensors))


def _is_number(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
                or tensor.dtype.is_complex)  # fmt: skip
