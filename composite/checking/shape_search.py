"""Shapes that a function takes, by a search that follows how far it comes.

A function of nine tensors takes none of the shapes that are drawn blindly. Where it raises, some of
its ops were made before; shapes with which more are made are nearer to those that fit, and only the
tensors that the op that raised is made of need other ones. The error tells which: it has the shapes
that the op was given and the dims that should be equal, which are tried first.

Not for: what may change in the shapes that were found (templates.py).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
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
        told: the shapes that the error has in its message, those of fewer dims last.
        split: a size that should be divisible by a number, and that number, if the error says so.
        taken: the positions of the tensors that the op that raised takes as they are.
    """

    def __init__(
        self,
        ops: int,
        blamed: Sequence[int],
        told: Shapes = (),
        split: tuple[int, int] | None = None,
        taken: Sequence[int] = (),
    ) -> None:
        self.ops = ops
        self.blamed = blamed
        self.told = told
        self.split = split
        self.taken = taken


class _SafeGraph(tf.Graph):
    """A graph that refuses an op with which TensorFlow's shape function ends the process."""

    def _create_op_internal(
        self, op_type: str, inputs: Sequence[Any], *arguments: Any, **keywords: Any
    ) -> Any:
        if op_type == "GatherV2":
            batch_dims = keywords["attrs"]["batch_dims"].i
            if (inputs[1].shape.rank or 0) < batch_dims:
                raise ValueError(f"batch_dims is {batch_dims}: indices {inputs[1].shape}")
        return super()._create_op_internal(op_type, inputs, *arguments, **keywords)


def traced(function: Callable[..., Any], dtypes: Sequence[tf.DType], shapes: Shapes) -> Progress:
    """Traces a function of tensors of these dtypes and shapes."""
    with _SafeGraph().as_default() as graph:
        inputs = [
            tf.compat.v1.placeholder(dtype, shape)
            for dtype, shape in zip(dtypes, shapes, strict=True)
        ]
        try:
            function(*inputs)
        except Exception as error:  # noqa: BLE001 - a body may raise anything
            arguments, message = _arguments(error), str(error)
            blamed = _inputs_of(arguments, inputs) or range(len(inputs))
            taken = [n for n, x in enumerate(inputs) if any(x is y for y in arguments)]
            ops = len(graph.get_operations())
            return Progress(ops, blamed, _told(message), _split(message), taken)
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

    def step(shapes: Shapes, best: Progress, rank: int) -> tuple[Shapes, Progress]:
        """A change that is drawn, kept where the function comes no less far."""
        other = _changed(shapes, best.blamed or range(count), rank, random)
        found = progress(other)
        kept = not found.blamed or (best.blamed and found.ops >= best.ops)
        return (other, found) if kept else (shapes, best)

    tried: set[Shapes] = set()  # of what errors told
    best_first = sorted(_RANKS, key=lambda rank: -progress(start(rank)).ops)
    most_often = [best_first[0]] * 2
    for rank in (*most_often, *best_first, *most_often, *best_first[1:]) if count else ():
        shapes = start(rank)
        best = progress(shapes)
        for _ in range(_TRIES):
            if not best.blamed and accepts(shapes):
                return shapes
            for other in _suggested(shapes, best):
                if other in tried:
                    continue
                tried.add(other)
                found = progress(other)
                if not found.blamed or found.ops > best.ops:
                    shapes, best = other, found
                    break
            else:
                shapes, best = step(shapes, best, rank)
    return None


def _told(message: str) -> Shapes:
    """The shapes in the message of an error: "[2,3]", and for "are 3 and 5" a shape of each."""
    shapes = {
        tuple(int(dim) for dim in found.split(",") if dim.strip())
        for found in re.findall(r"[\[(]((?:\d+, ?)*\d*,?)[\])]", message)
    }
    for pair in re.findall(r"(\d+) and (\d+)", message):
        shapes.update((int(dim),) for dim in pair)
    return tuple(sorted(shapes, key=lambda shape: (-len(shape), shape)))


def _split(message: str) -> tuple[int, int] | None:
    """The size and the parts of an error of a split: "evenly divisible by 4 but is 3"."""
    found = re.search(r"divisible by (\d+) but is (\d+)", message)
    return None if found is None else (int(found[2]), int(found[1]))


def _suggested(shapes: Shapes, progress: Progress) -> Iterator[Shapes]:
    """The shapes with what the error tells: an input made like another, or one of its dims.

    A size that is split is made larger wherever it is: dims that are equal stay so. Of several
    inputs of one op, each may be wrong in the same way. Where no change of one input helps, as for
    a square matrix, two sizes are made equal wherever they are.
    """
    if progress.split is not None:
        size, parts = progress.split
        yield tuple(tuple(d * parts if d == size else d for d in shape) for shape in shapes)
    dims = sorted({dim for shape in progress.told for dim in shape})
    ends = dict.fromkeys(
        shape[first:] for shape in progress.told for first in range(len(shape) + 1)
    )
    if len(progress.taken) > 1:
        for other in ends:
            yield tuple(other if n in progress.taken else own for n, own in enumerate(shapes))
    for which in progress.blamed:
        own = shapes[which]
        dim_changed = (
            (*own[:at], dim, *own[at + 1 :]) for at in reversed(range(len(own))) for dim in dims
        )
        for other in dict.fromkeys((*ends, *dim_changed)):
            if other != own:
                yield (*shapes[:which], other, *shapes[which + 1 :])
    for size, to in itertools.permutations(dims, 2):
        yield tuple(tuple(to if d == size else d for d in shape) for shape in shapes)


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
