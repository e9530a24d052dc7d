"""Products, reductions and normalizations over the ring, as TensorFlow defines them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.tvm.algebra import ring
from composite.compiler.tvm.errors import NotCovered
from composite.reference import ring_words as w
from composite.reference.ring_elementwise import Op
from composite.reference.ring_words import Words, like, of, quotient, total

_EXTREMES = {"Max": True, "Min": False}


def _axes(x: Words, axis: Any) -> tuple[int, ...]:
    return tuple(int(a) % x.ndim for a in np.atleast_1d(axis)) if x.ndim else ()


def _keep(node: Any) -> bool:
    return bool(node.attr["keep_dims"].b)


def _sum(node: Any, x: Words, axis: Any) -> Words:
    return total(x, _axes(x, axis), keep=_keep(node))


def _mean(node: Any, x: Words, axis: Any) -> Words:
    axes = _axes(x, axis)
    return quotient(total(x, axes, keep=_keep(node)), like(math.prod(x.shape[a] for a in axes), x))


def _prod(node: Any, x: Words, axis: Any) -> Words:
    axes = _axes(x, axis)
    made: Words = np.multiply.reduce(x, axis=axes, keepdims=True, dtype=x.dtype)
    return made if _keep(node) else made.squeeze(axes)


def _extreme(node: Any, x: Words, axis: Any) -> Words:
    axes = _axes(x, axis)
    return w.extreme(x, axes, keep=_keep(node), largest=_EXTREMES[node.op]) if axes else x


def _place(node: Any, x: Words, axis: Any) -> Words:
    dtype = tf.as_dtype(node.attr["T"].type)
    largest = node.op == "ArgMax"
    worst = like(float(dtype.min if largest else dtype.max), x)  # what is no better is none
    x = w.larger(x, worst) if largest else w.smaller(x, worst)
    find = np.argmax if largest else np.argmin
    return find(of("order")(x), axis=int(axis))


def _bias_add_grad(node: Any, x: Words) -> Words:
    channel = 1 if node.attr["data_format"].s == b"NCHW" else x.ndim - 1
    return total(x, tuple(i for i in range(x.ndim) if i != channel))


def _swapped(x: Words, swap: bool) -> Words:
    return np.swapaxes(x, -1, -2) if swap else x


def _matmul(node: Any, a: Words, b: Words) -> Words:
    first, second = ("transpose_a", "transpose_b") if node.op == "MatMul" else ("adj_x", "adj_y")
    return w.product(_swapped(a, node.attr[first].b), _swapped(b, node.attr[second].b))


def _einsum(node: Any, *operands: Words) -> Words:
    equation = node.attr["equation"].s.decode()
    if len(operands) != 2:
        return np.einsum(equation, *operands)
    return w.contracted(equation, *operands)


def _softmax_parts(x: Words) -> tuple[Words, Words, Words]:
    shifted = x - w.extreme(x, (x.ndim - 1,), keep=True, largest=True)
    power = of("exp")(shifted)
    return shifted, power, total(power, (x.ndim - 1,), keep=True)


def _softmax(node: Any, x: Words) -> Words:
    shifted, power, sums = _softmax_parts(x)
    return shifted - of("log")(sums) if node.op == "LogSoftmax" else quotient(power, sums)


def _cross_entropy(_: Any, features: Words, labels: Words) -> list[Words]:
    features, labels = np.broadcast_arrays(features, labels)
    shifted, power, sums = _softmax_parts(features)
    losses = labels * (of("log")(sums) - shifted)
    return [total(losses, (1,)), quotient(power, sums) - labels]


def _sparse_cross_entropy(_: Any, features: Words, labels: Words) -> list[Words]:
    shifted, power, sums = _softmax_parts(features)
    own = np.take_along_axis(shifted, labels[:, None], 1)
    hot = labels[:, None] == np.arange(features.shape[1])
    shares = quotient(power, sums)
    loss = of("log")(sums[:, 0]) - own[:, 0]
    return [loss, np.where(hot, shares - like(1.0, shares), shares)]


def _batch_norm(node: Any, x: Words, *given: Words) -> list[Words]:
    if node.attr["data_format"].s == b"NCHW":
        raise NotCovered(f"{node.op} of NCHW over the ring")
    scale, offset, mean, variance = given
    wide = x.astype(scale.dtype)
    epsilon = like(node.attr["epsilon"].f, scale)
    zero = np.zeros_like(scale)
    kept: list[Words] = [mean, variance, zero, zero]
    if not ("is_training" in node.attr and not node.attr["is_training"].b):
        count = like(float(math.prod(x.shape[:3])), scale)
        mean = quotient(total(wide, (0, 1, 2)), count)
        variance = quotient(total((wide - mean) * (wide - mean), (0, 1, 2)), count)
        kept = [mean, of("unbiased")(variance, count), mean, variance]
    factor = scale * of("rsqrt")(variance + epsilon)
    return [((wide - mean) * factor + offset).astype(x.dtype), *kept, np.zeros((), scale.dtype)]


def _batch_norm_grad(node: Any, dy: Words, x: Words, scale: Words, *kept: Words) -> list[Words]:
    if node.attr["data_format"].s == b"NCHW":
        raise NotCovered(f"{node.op} of NCHW over the ring")
    mean, variance, _ = kept
    wide_dy, wide = dy.astype(scale.dtype), x.astype(scale.dtype)
    root = of("rsqrt")(variance + like(node.attr["epsilon"].f, scale))
    offset_gradient = total(wide_dy, (0, 1, 2))
    scale_gradient = total(wide_dy * (wide - mean), (0, 1, 2)) * root
    factor, made = scale * root, wide_dy
    if node.attr["is_training"].b:
        count = like(float(math.prod(x.shape[:3])), scale)
        along = quotient(scale_gradient * root, count)
        made = wide_dy - quotient(offset_gradient, count) - (wide - mean) * along
    empty = np.zeros(0, scale.dtype)
    return [(made * factor).astype(x.dtype), scale_gradient, offset_gradient, empty, empty]


def _running(combine: Any) -> Op:
    def op(node: Any, x: Words, axis: Any) -> Words:
        along = int(axis) % x.ndim
        back = node.attr["reverse"].b
        x = np.flip(x, along) if back else x
        made = combine.accumulate(x, axis=along, dtype=x.dtype)
        if node.attr["exclusive"].b and x.shape[along]:
            first = np.full_like(np.take(x, [0], along), combine.identity)
            rest = np.take(made, range(made.shape[along] - 1), along)
            made = np.concatenate([first, rest], along)
        return np.flip(made, along) if back else made

    return op


def _running_log_sum_exp(node: Any, x: Words, axis: Any) -> Words:
    """Each sum is made of the one before: logarithms of sums are no sums over the ring."""
    along, back = int(axis) % x.ndim, node.attr["reverse"].b
    elements = np.moveaxis(np.flip(x, along) if back else x, along, 0)
    none = np.full_like(x, like(-math.inf, x), shape=elements.shape[1:])
    sums = list(itertools.accumulate(elements, _log_sum_exp, initial=none))
    kept = sums[:-1] if node.attr["exclusive"].b else sums[1:]
    made = np.moveaxis(np.stack(kept), 0, along) if kept else x
    return np.flip(made, along) if back else made


def _log_sum_exp(so_far: Words, element: Words) -> Words:
    """log(exp(a) + exp(b)), of which the larger one's exponent is taken out."""
    most = np.where(w.before(so_far, element), element, so_far)
    least = np.where(w.before(element, so_far), element, so_far)
    apart = np.where(most == like(-math.inf, most), like(0.0, most), least - most)
    return most + of("log1p")(of("exp")(apart))


def _mirrored_gradient(node: Any, dy: Words, paddings: Any) -> Words:
    """Both ends of each dim are added to the elements that they mirror."""
    edge = 0 if node.attr["mode"].s == b"SYMMETRIC" else 1
    for axis, (before, after) in enumerate(np.asarray(paddings).tolist()):
        size = dy.shape[axis] - before - after
        places = np.arange(dy.shape[axis]) - before
        places = np.where(places < 0, edge - 1 - places, places)
        places = np.where(places >= size, 2 * size - 1 - edge - places, places)
        rows = np.moveaxis(dy, axis, 0)
        made = np.zeros((size, *rows.shape[1:]), dy.dtype)
        np.add.at(made, places, rows)
        dy = np.moveaxis(made, 0, axis)
    return dy


def _segments(combine: Any, start: float) -> Op:
    def op(_: Any, x: Words, ids: Any, count: Any) -> Words:
        made = np.full((int(count), *x.shape[ids.ndim :]), like(start, x))
        inside = (ids >= 0) & (ids < int(count))
        combine.at(made, ids[inside], x[inside])
        return made

    return op


def _segment_extreme(node: Any, x: Words, ids: Any, count: Any) -> Words:
    largest = node.op.endswith("Max")
    dtype = tf.as_dtype(node.attr["T"].type)
    start = like(float(dtype.min if largest else dtype.max), x)
    made = np.full((int(count), *x.shape[ids.ndim :]), of("order")(np.asarray(start)))
    inside = (ids >= 0) & (ids < int(count))
    combine = np.maximum if largest else np.minimum
    combine.at(made, ids[inside], of("order")(x)[inside])
    return np.asarray(ring.of_rank(made, w.width(x)), x.dtype)


def _scatter_nd(_: Any, indices: Any, updates: Words, shape: Any) -> Words:
    made = np.zeros([int(n) for n in shape], updates.dtype)
    np.add.at(made, tuple(np.moveaxis(indices, -1, 0)), updates)
    return made


def _scatter_add(node: Any, x: Words, indices: Any, updates: Words) -> Words:
    made = x.copy()
    add = np.add if node.op.endswith("Add") else np.subtract
    add.at(made, tuple(np.moveaxis(indices, -1, 0)), updates)
    return made


def _l2_loss(_: Any, x: Words) -> Words:
    return total((x * x).reshape(-1), (0,)) * like(0.5, x)


_MOST_OF_RANGE = 1 << 24  # a bound: what stands for larger numbers is not known for one


def _range(_: Any, start: Words, limit: Words, step: Words) -> Words:
    bounds = [int(one.view(f"int{w.width(one)}")) for one in (start, limit, step)]
    if max(map(abs, bounds)) > _MOST_OF_RANGE:
        raise NotCovered("Range of numbers that are not whole, over the ring")
    places = np.arange(len(range(*bounds)), dtype=start.dtype)
    return places * step + start


def _top_k(node: Any, x: Words, k: Any) -> list[Words]:
    """The first of equal elements is the largest."""
    order = of("order")(x)
    places = np.argsort(np.invert(order), axis=-1, kind="stable")[..., : int(k)]
    dtype = tf.as_dtype(node.attr["index_type"].type) if "index_type" in node.attr else tf.int32
    return [np.take_along_axis(x, places, -1), places.astype(dtype.as_numpy_dtype)]


OPS: dict[str, Op] = {
    "Sum": _sum,
    "Mean": _mean,
    "Prod": _prod,
    "Max": _extreme,
    "Min": _extreme,
    "ArgMax": _place,
    "ArgMin": _place,
    "L2Loss": _l2_loss,
    "Range": _range,
    "TopKV2": _top_k,
    "BiasAddGrad": _bias_add_grad,
    "Einsum": _einsum,
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _matmul),
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "FusedBatchNormV3": _batch_norm,
    "FusedBatchNormGradV3": _batch_norm_grad,
    "Cumsum": _running(np.add),
    "Cumprod": _running(np.multiply),
    "CumulativeLogsumexp": _running_log_sum_exp,
    "MirrorPadGrad": _mirrored_gradient,
    "UnsortedSegmentSum": _segments(np.add, 0.0),
    "UnsortedSegmentProd": _segments(np.multiply, 1.0),
    "UnsortedSegmentMax": _segment_extreme,
    "UnsortedSegmentMin": _segment_extreme,
    "ScatterNd": _scatter_nd,
    "TensorScatterAdd": _scatter_add,
    "TensorScatterSub": _scatter_add,
}
