"""Shapes that a function takes, by a search that follows how far it comes.

A function of nine tensors takes none of the shapes that are drawn blindly. Where it raises, some of
its ops were made before; shapes with which more are made are nearer to those that fit, and only the
tensors that the op that raised is made of need other ones.

Not for: what may change in the shapes that were found (templates.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.checking.templates import Shapes

_TRIES = 220  # from each start
_RANKS = (2, 3, 4, 5, 1)
_SIZES = (2, 3, 5, 7, 4)
_MULTIPLES = (6, 8, 9, 12, 20)  # what is split into parts is a multiple


class Progress:
    """How far a function came when it was traced.

    Attributes:
        ops: how many it had made.
        blamed: the positions of the tensors that the op is made of that raised; all, if that is not
            known; none, if nothing raised.
    """

    def __init__(self, ops: int, blamed: Sequence[int]) -> None:
        self.ops = ops
        self.blamed = blamed


def traced(function: Callable[..., Any], dtypes: Sequence[tf.DType], shapes: Shapes) -> Progress:
    """Traces a function of tensors of these dtypes and shapes."""
    with tf.Graph().as_default() as graph:
        inputs = [
            tf.compat.v1.placeholder(dtype, shape)
            for dtype, shape in zip(dtypes, shapes, strict=True)
        ]
        try:
            function(*inputs)
        except Exception as error:  # noqa: BLE001 - a body may raise anything
            made_of = _inputs_of(_arguments(error), inputs)
            return Progress(len(graph.get_operations()), made_of or range(len(inputs)))
        return Progress(len(graph.get_operations()), ())


def search(
    count: int,
    progress: Callable[[Shapes], Progress],
    accepts: Callable[[Shapes], bool],
    random: np.random.Generator,
) -> Shapes | None:
    """Shapes of `count` tensors that `accepts` takes; None if none are found.

    Starts with tensors of one shape, most often of the rank with which the function comes farthest.
    """

    def start(rank: int) -> Shapes:
        return (tuple(_SIZES[:rank]),) * count

    best_first = sorted(_RANKS, key=lambda rank: -progress(start(rank)).ops)
    most_often = [best_first[0]] * 2
    for rank in (*most_often, *best_first, *most_often, *best_first[1:]) if count else ():
        shapes = start(rank)
        best = progress(shapes)
        for _ in range(_TRIES):
            if not best.blamed and accepts(shapes):
                return shapes
            other = _changed(shapes, best.blamed or range(count), rank, random)
            found = progress(other)
            if not found.blamed or (best.blamed and found.ops >= best.ops):
                shapes, best = other, found
    return None


def _changed(
    shapes: Shapes, blamed: Sequence[int], rank: int, random: np.random.Generator
) -> Shapes:
    """The shapes with one change, of a tensor that is blamed or of all dims of one size."""

    def pick(values: Sequence[Any]) -> Any:
        return values[int(random.integers(len(values)))]

    which, how = pick(blamed), random.random()
    shape = shapes[which]
    present = {dim for one in shapes for dim in one}
    new = [size for size in (*_SIZES, *_MULTIPLES) if size not in present]
    sizes = [*sorted(present), *_SIZES]
    if how < 0.2 and shape and new:  # dims that are equal stay so, and no others become it
        size, to = pick(shape), pick(new)
        return tuple(tuple(to if dim == size else dim for dim in one) for one in shapes)
    if how < 0.35:
        shape = pick(shapes)
    elif how < 0.55 and len(shape) < rank:
        at = int(random.integers(len(shape) + 1))
        shape = (*shape[:at], pick(sizes), *shape[at:])
    elif shape:
        at = int(random.integers(len(shape)))
        instead = () if how < 0.7 else (pick([*sizes, *_MULTIPLES]),)
        shape = (*shape[:at], *instead, *shape[at + 1 :])
    return (*shapes[:which], shape, *shapes[which + 1 :])


def _arguments(error: Exception) -> list[Any]:
    """The tensors that the innermost call had that has any, of those that an error ended."""
    found: list[Any] = []
    trace = error.__traceback__
    while trace is not None:
        values = list(trace.tb_frame.f_locals.values())
        flat = [x for v in values for x in (v if isinstance(v, list | tuple) else [v])]
        found = [x for x in flat if tf.is_tensor(x)] or found
        trace = trace.tb_next
    return found


def _inputs_of(tensors: Sequence[Any], inputs: Sequence[Any]) -> list[int]:
    """The positions of the inputs that tensors are made of."""
    pending, seen = [x.op for x in tensors], set()
    while pending:
        op = pending.pop()
        if op.name not in seen:
            seen.add(op.name)
            pending += [x.op for x in op.inputs]
    return [n for n, x in enumerate(inputs) if x.op.name in seen]
