"""The numbers that a part of a graph, and the op in its place, compute from the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.ops import functions
from composite.recognition.reading import Constants

Array = np.ndarray[Any, Any]
_COUNT = 2  # draws that are compared: of any sign, and positive ones


def part_of(
    graph: tf.Graph, constants: Constants, roots: Sequence[Any], inputs: Sequence[Any]
) -> functions.Body:
    """The nodes between inputs and roots as a graph of their own."""
    made = GraphDef()
    made.versions.CopyFrom(graph.graph_def_versions)
    stand_ins: dict[str, str] = {}
    for index, tensor in enumerate(inputs):
        node = made.node.add(name=f"given_input_{index}", op="Placeholder")
        node.attr["dtype"].type = tensor.dtype.as_datatype_enum
        node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
        stand_ins.setdefault(tensor.name, f"{node.name}:0")
    seen: set[str] = set()
    pending = [one.op for one in roots]
    while pending:
        op = pending.pop()
        if op.name in seen:
            continue
        seen.add(op.name)
        node = made.node.add()
        node.CopyFrom(op.node_def)
        node.device = ""
        node.attr.pop("_class", None)
        taken = []
        for index, tensor in enumerate(op.inputs):
            if tensor.name in stand_ins:
                taken.append(stand_ins[tensor.name])
                continue
            values = constants.value(tensor)
            if values is None:
                taken.append(tensor.name)
                pending.append(tensor.op)
                continue
            known = made.node.add(name=f"{op.name}/known_input_{index}", op="Const")
            known.attr["dtype"].type = tensor.dtype.as_datatype_enum
            known.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values, tensor.dtype))
            taken.append(f"{known.name}:0")
        node.input[:] = taken
    return functions.Body(
        made,
        [f"given_input_{index}" for index in range(len(inputs))],
        [one.name for one in roots],
        [one.dtype for one in inputs],
        [one.dtype for one in roots],
    )


def deviation(
    part: functions.Body,
    expansion: functions.Body,
    inputs: Sequence[Any],
    slots: Sequence[int | Array],
) -> float:
    """The largest difference as a part of the largest value, in double precision.

    `slots` has, for each input of the expansion, the index of the part's, or its value.
    """
    worst = 0.0
    random = np.random.default_rng(0)
    for draw in range(_COUNT):
        given = [_drawn(random, one, is_positive=bool(draw)) for one in inputs]
        mine = [given[one] if isinstance(one, int) else one for one in slots]
        found, wanted = _run(part, given), _run(expansion, mine)
        pairs = zip(found, wanted, strict=True)
        worst = max([worst, *(_distance(y, z) for y, z in pairs)])
    return worst


def _drawn(random: np.random.Generator, tensor: Any, *, is_positive: bool) -> Array:
    shape = tensor.shape.as_list()
    if tensor.dtype.is_floating:
        return random.uniform(0.1, 1.0, shape) if is_positive else random.standard_normal(shape)
    return random.integers(0, 2, shape).astype(tensor.dtype.as_numpy_dtype)


def _run(source: functions.Body, given: Sequence[Array]) -> list[Array]:
    body = functions.in_double(source)
    graph = tf.Graph()
    with graph.as_default():
        inputs = [
            tf.constant(one, dtype) for one, dtype in zip(given, body.input_dtypes, strict=True)
        ]
        outputs = functions.inline(body, inputs)
    with tf.compat.v1.Session(graph=graph) as session:
        return [np.asarray(one) for one in session.run(outputs)]


def _distance(y: Array, z: Array) -> float:
    if y.shape != z.shape:
        return float("inf")
    y, z = y.astype(np.float64), z.astype(np.float64)
    finite = np.isfinite(z)
    if not np.array_equal(y[~finite], z[~finite], equal_nan=True):
        return float("inf")
    if not np.isfinite(y[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0 if not z.size else float("inf")
    scale = max(float(np.max(np.abs(z[finite]))), float(np.finfo(np.float32).tiny))
    return float(np.max(np.abs(y[finite] - z[finite]))) / scale


def bound(dtypes: Sequence[tf.DType]) -> float:
    """How far values may be apart for the rounding of constants to a dtype."""
    return 2e-2 if any(one.size == 2 and one.is_floating for one in dtypes) else 1e-5
