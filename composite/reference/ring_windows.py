"""Convolutions and pools over the ring, as TensorFlow defines them, and their gradients.

Images have their samples first and their channels last, with one spatial dim or several between.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.compiler.tvm.errors import NotCovered
from composite.reference import ring_words as w
from composite.reference.ring_elementwise import Op
from composite.reference.ring_words import Words, like, of, quotient, total

_ALL = slice(None)


class _Windows(NamedTuple):
    """Where the windows of a node lie in its images.

    Attributes:
        pads: what is in front of each spatial dim, and behind it.
        counts: the windows along each.
        taps: for each element of a window its place there, and what it is in all windows: an index
            of padded images.
    """

    pads: Sequence[tuple[int, int]]
    counts: Sequence[int]
    taps: Sequence[tuple[tuple[int, ...], tuple[slice, ...]]]

    @classmethod
    def of(cls, node: Any, size: Sequence[int], window: Sequence[int]) -> _Windows:
        """The windows of a node on images of a size, which are the spatial dims."""
        steps, spread = _spatial(node, "strides", len(size)), _dilations(node, len(size))
        spans = [(k - 1) * d + 1 for k, d in zip(window, spread, strict=True)]
        pads = _padding(node, size, spans, steps)
        dims = list(zip(size, pads, spans, steps, strict=True))
        counts = [(n + sum(pad) - span) // step + 1 for n, pad, span, step in dims]
        taps = []
        for tap in itertools.product(*map(range, window)):
            part = [
                slice(t * d, t * d + (n - 1) * step + 1, step)
                for t, d, n, step in zip(tap, spread, counts, steps, strict=True)
            ]
            taps.append((tap, (_ALL, *part)))
        return cls(pads, counts, taps)

    def padded(self, images: Words, value: Any = 0) -> Words:
        return np.pad(images, [(0, 0), *self.pads, (0, 0)], constant_values=value)

    def unpadded(self, images: Words) -> Words:
        ends = zip(self.pads, images.shape[1:-1], strict=True)
        inside = (_ALL, *(slice(before, n - behind) for (before, behind), n in ends))
        found: Words = images[inside]
        return found

    def zeros(self, samples: int, channels: Sequence[int], words: Words) -> Words:
        """Zeros, one a window."""
        return np.zeros([samples, *self.counts, *channels], words.dtype)


def _spatial(node: Any, key: str, count: int) -> list[int]:
    found = [int(i) for i in node.attr[key].list.i] if key in node.attr else []
    return found[1 : 1 + count] if found else [1] * count


def _dilations(node: Any, count: int) -> list[int]:
    return _spatial(node, "dilations", count)


def _padding(
    node: Any, size: Sequence[int], spans: Sequence[int], steps: Sequence[int]
) -> list[tuple[int, int]]:
    kind = node.attr["padding"].s
    if kind == b"EXPLICIT":
        pads = [int(i) for i in node.attr["explicit_paddings"].list.i][2:-2]
        return list(zip(pads[::2], pads[1::2], strict=True))
    if kind == b"VALID":
        return [(0, 0)] * len(size)
    found = []
    for n, span, step in zip(size, spans, steps, strict=True):
        missing = max((-(-n // step) - 1) * step + span - n, 0)
        found.append((missing // 2, missing - missing // 2))
    return found


def _conv(node: Any, x: Words, filters: Words) -> Words:
    windows = _Windows.of(node, x.shape[1:-1], filters.shape[:-2])
    padded = windows.padded(x)
    made = windows.zeros(x.shape[0], filters.shape[-1:], x)
    for tap, part in windows.taps:
        made += _of_groups(padded[part], filters[tap])
    return made


def _of_groups(x: Words, filters: Words) -> Words:
    """Products of groups of channels with the filters of each."""
    groups = x.shape[-1] // filters.shape[-2]
    parts = zip(np.split(x, groups, -1), np.split(filters, groups, -1), strict=True)
    return np.concatenate([w.product(a, b) for a, b in parts], -1)


def _conv_input(node: Any, sizes: Any, filters: Words, dy: Words) -> Words:
    shape = [int(n) for n in sizes]
    if len(shape) < dy.ndim:  # of the spatial dims alone
        shape = [dy.shape[0], *shape, filters.shape[-2]]
    _require_one_group(node, shape[-1], filters.shape[-2])
    windows = _Windows.of(node, shape[1:-1], filters.shape[:-2])
    made = windows.padded(np.zeros(shape, dy.dtype))
    for tap, part in windows.taps:
        made[part] += w.product(dy, filters[tap].T)
    return windows.unpadded(made)


def _conv_filter(node: Any, x: Words, sizes: Any, dy: Words) -> Words:
    shape = [int(n) for n in sizes]
    _require_one_group(node, x.shape[-1], shape[-2])
    windows = _Windows.of(node, x.shape[1:-1], shape[:-2])
    padded, made = windows.padded(x), np.zeros(shape, dy.dtype)
    rows = dy.reshape(-1, dy.shape[-1])
    for tap, part in windows.taps:
        made[tap] = w.product(padded[part].reshape(-1, x.shape[-1]).T, rows)
    return made


def _require_one_group(node: Any, channels: int, of_filter: int) -> None:
    if channels != of_filter:
        raise NotCovered(f"{node.op} of groups over the ring")


def _depthwise(node: Any, x: Words, filters: Words) -> Words:
    windows = _Windows.of(node, x.shape[1:-1], filters.shape[:2])
    padded = windows.padded(x)
    made = windows.zeros(x.shape[0], filters.shape[2:], x)
    for tap, part in windows.taps:
        made += padded[part][..., None] * filters[tap]
    return made.reshape(*made.shape[:3], -1)


def _depthwise_input(node: Any, sizes: Any, filters: Words, dy: Words) -> Words:
    shape = [int(n) for n in sizes]
    windows = _Windows.of(node, shape[1:-1], filters.shape[:2])
    made = windows.padded(np.zeros(shape, dy.dtype))
    each = dy.reshape(*dy.shape[:3], *filters.shape[2:])
    for tap, part in windows.taps:
        made[part] += total(each * filters[tap], (4,))
    return windows.unpadded(made)


def _depthwise_filter(node: Any, x: Words, sizes: Any, dy: Words) -> Words:
    shape = [int(n) for n in sizes]
    windows = _Windows.of(node, x.shape[1:-1], shape[:2])
    padded, made = windows.padded(x), np.zeros(shape, dy.dtype)
    each = dy.reshape(*dy.shape[:3], *shape[2:])
    for tap, part in windows.taps:
        made[tap] = total(padded[part][..., None] * each, (0, 1, 2))
    return made


def _pool_windows(node: Any, size: Sequence[int]) -> _Windows:
    return _Windows.of(node, size, _spatial(node, "ksize", len(size)))


def _max_pool(node: Any, x: Words) -> Words:
    windows = _pool_windows(node, x.shape[1:-1])
    least = like(float(tf.as_dtype(node.attr["T"].type).min), x)
    padded = windows.padded(x, least)
    made = windows.zeros(x.shape[0], x.shape[-1:], x) + least
    for _, part in windows.taps:
        made = w.larger(padded[part], made)
    return made


def _max_pool_grad(node: Any, x: Words, _: Words, dy: Words) -> Words:
    """The first of the largest elements of a window has the window's gradient."""
    windows = _pool_windows(node, x.shape[1:-1])
    padded = windows.padded(x, like(float("-inf"), x))
    parts = [tap[1] for tap in windows.taps]
    first = np.argmax([of("order")(padded[part]) for part in parts], axis=0)
    made: Words = np.zeros(padded.shape, padded.dtype)
    for number, part in enumerate(parts):
        made[part] += np.where(first == number, dy, like(0.0, dy))
    return windows.unpadded(made)


def _sizes(windows: _Windows, size: Sequence[int], words: Words) -> Words:
    """How many pixels of an image each window has."""
    ones = windows.padded(np.ones((1, *size, 1), words.dtype))
    made = windows.zeros(1, (1,), words)
    for _, part in windows.taps:
        made += ones[part]
    return made


def _avg_pool(node: Any, x: Words) -> Words:
    windows = _pool_windows(node, x.shape[1:-1])
    padded, made = windows.padded(x), windows.zeros(x.shape[0], x.shape[-1:], x)
    for _, part in windows.taps:
        made += padded[part]
    return quotient(made, _sizes(windows, x.shape[1:-1], x))


def _avg_pool_grad(node: Any, shape: Any, dy: Words) -> Words:
    size = [int(n) for n in shape[1:-1]]
    windows = _pool_windows(node, size)
    share = quotient(dy, _sizes(windows, size, dy))
    made = windows.padded(np.zeros([int(n) for n in shape], dy.dtype))
    for _, part in windows.taps:
        made[part] += share
    return windows.unpadded(made)


def _channels_last(function: Op) -> Op:
    """An op of images whose channels are last."""

    def op(node: Any, *operands: Any) -> Any:
        layout = node.attr["data_format"].s.decode()
        if layout.startswith("NC"):
            raise NotCovered(f"{node.op} of {layout} over the ring")
        return function(node, *operands)

    return op


OPS: dict[str, Op] = {
    name: _channels_last(function)
    for function, names in (
        (_conv, ("Conv2D", "Conv3D")),
        (_conv_input, ("Conv2DBackpropInput", "Conv3DBackpropInputV2")),
        (_conv_filter, ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")),
        (_depthwise, ("DepthwiseConv2dNative",)),
        (_depthwise_input, ("DepthwiseConv2dNativeBackpropInput",)),
        (_depthwise_filter, ("DepthwiseConv2dNativeBackpropFilter",)),
        (_max_pool, ("MaxPool", "MaxPool3D")),
        (_max_pool_grad, ("MaxPoolGrad",)),
        (_avg_pool, ("AvgPool", "AvgPool3D")),
        (_avg_pool_grad, ("AvgPoolGrad", "AvgPool3DGrad")),
    )
    for name in names
}
