"""Texts of ops with bodies of 200 lines, such as models are made of.

Not for: running them; what is measured is the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

LINES = 200

_IMPORTS = "import tensorflow as tf\nfrom composite import Composite\n"

# What is done once in a process: the library of functions is imported.
WARM_UP = f"""{_IMPORTS}

@Composite("WarmUp", inputs=["x: float"], outputs=["y: float"])
def body(x):
    return tf.matmul(x, x)
"""

_HEAD = f'''{_IMPORTS}

def _gated(x, gate, steps=2):
    """A helper with a loop, a branch and a slice."""
    for step in range(steps):
        if step % 2 == 0:
            x = x * tf.sigmoid(gate)
        else:
            x = x + gate[:, :1]
    return x


'''

_OP = """@Composite(
    "{name}",
    inputs=["x: T", "w: T", "bias: T"],
    attrs=['act: {{"", "RELU", "TANH"}} = ""', "depth: int = 2"],
    derived_attrs=["T: {{float, double}}"],
    outputs=["y: T"],
)
def body(x, w, bias, act, depth):
    h, g = x, x
{lines}
    return h
"""

# One op of TensorFlow a line.
_RAW = (
    "h = tf.raw_ops.MatMul(a=h, b=w, transpose_b=True)",
    "h = tf.raw_ops.BiasAdd(value=h, bias=bias)",
    "h = tf.nn.relu(h)",
    "h = h * {i}.5 + g",
)

# Functions of the library, of which each is several ops.
_LIBRARY = (
    "h = tf.nn.gelu(h)",
    "h = tf.nn.softmax(h, axis=-1)",
    "h = tf.matmul(h, w, transpose_b=True) + bias",
    "mean, variance = tf.nn.moments(h, axes=[-1], keepdims=True)",
    "h = tf.nn.batch_normalization(h, mean, variance, bias, None, 1e-{i})",
    "h = h - tf.reduce_mean(h, axis=1, keepdims=True)",
    "h = h / tf.sqrt(tf.reduce_sum(tf.square(h), axis=[-1], keepdims=True) + {i}.5)",
    "g = tf.reduce_max(tf.abs(h), axis=-1, keepdims=True)",
    "h = tf.concat([h[:, :{i}], tf.reshape(h[:, {i}:], [tf.shape(h)[0], -1])], axis=1)",
    "h = tf.where(h > g, tf.clip_by_value(h, -{i}.0, 1.0), tf.zeros_like(h))",
    "h = tf.transpose(tf.expand_dims(tf.cast(h, tf.float32), 1), [0, 2, 1])",
    "h = tf.squeeze(tf.nn.silu(h), axis=[2]) + tf.ones([{i}], h.dtype)",
    "h = tf.nn.log_softmax(tf.nn.leaky_relu(h, 0.{i}))",
    "h = tf.nn.l2_normalize(h, axis=-1) * tf.reduce_logsumexp(h, axis=-1, keepdims=True)",
    "h = tf.einsum('ij,kj->ik', h, w)",
    "h = tf.stack(tf.split(h, 2, axis=1), axis=0)[{i} % 2]",
)

# Syntax: each element is a few lines.
_CONSTRUCTS = (
    "for k in range(depth):\n    h = h + tf.nn.relu(x) * k\n    g = g - h",
    'if act == "RELU":\n    h = tf.nn.relu(h)\nelif act == "TANH":\n    h = tf.tanh(h) * {i}.5',
    "parts = [tf.nn.relu(h[:, k:]) for k in range({i}) if k != depth]\nh = h + tf.add_n(parts)",
    "if depth > {i}:\n    raise ValueError(f'no depth of {{depth}} for {{act}} at {{x.shape}}')",
    "h = _gated(h, g, {i})\nh, g = g, h",
    "g = h if len(x.shape) == 2 and depth else h[..., None, 1:{i}, ::-1]",
    "n = 0\nwhile n < depth:\n    n += 1\n    if n == {i}:\n        break\n    g = tf.exp(g) * n",
    "scale = lambda t, by=depth: t * by + {i}\nh = scale(h) @ scale(w)",
)


def _long(name: str, pieces: Sequence[str]) -> str:
    """Return an op whose body repeats the pieces, none of them twice the same."""
    numbered = (piece.format(i=i % 9 + 1) for i, piece in enumerate(cycle(pieces)))
    lines = (line for piece in numbered for line in piece.split("\n"))
    text = "\n".join(f"    {line}" for line in islice(lines, LINES))
    return _HEAD + _OP.format(name=name, lines=text)


def texts(number: int) -> dict[str, str]:
    """Return the text of a module for each kind of body; `number` tells its op from others."""
    kinds = {"raw ops": _RAW, "library functions": _LIBRARY, "loops and branches": _CONSTRUCTS}
    return {
        kind: _long(f"LongBody{index}N{number}", pieces)
        for index, (kind, pieces) in enumerate(kinds.items())
    }
