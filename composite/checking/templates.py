"""Which ranks and which dims the inputs of an op must have: found by trying.

A declaration says nothing about shapes, and a call with shapes that do not fit compares two errors
only. So the Python function is run on many small calls first, and those that it takes are kept.
Where none of these fits, shapes are searched for (shape_search.py).

Not for: the values of samples (samples.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

Shapes = tuple[tuple[int, ...], ...]  # of each input tensor


class Dim(NamedTuple):
    """A dim of a template: `factor` times a size that is drawn; `factor` itself without a symbol.

    Dims of one symbol are drawn as one size.
    """

    factor: int
    symbol: int | None


Template = tuple[tuple[Dim, ...], ...]

_SYMBOLS = 4
_SIZES, _OTHER_SIZES = (2, 3, 4, 5), (5, 2, 7, 3)
TRIES = 400
_ENOUGH = 12
_MOST_GROUPS = 40  # that are tried for one dim
_MOST_PARTS = 4  # of a size: an LSTM has four gates


def symbols(template: Template) -> int:
    """How many sizes are drawn for a template."""
    used = [dim.symbol for shape in template for dim in shape if dim.symbol is not None]
    return max(used, default=-1) + 1


def shapes_of(template: Template, sizes: Sequence[int]) -> Shapes:
    """The shapes of a template with these sizes."""
    return tuple(
        tuple(dim.factor * (1 if dim.symbol is None else sizes[dim.symbol]) for dim in shape)
        for shape in template
    )


def find(
    candidates: Iterator[Template],
    accepts: Callable[[Shapes], bool],
    unless_none_of: int = TRIES,
) -> list[Template]:
    """The templates whose shapes `accepts` takes; none if it takes none of the first so many."""
    found: list[Template] = []
    for number, candidate in enumerate(itertools.islice(candidates, TRIES)):
        if number >= unless_none_of and not found:
            break
        shapes = shapes_of(candidate, _SIZES)
        if candidate in found or not accepts(shapes):
            continue
        # One that fits with any sizes tells little more than the first did.
        any_size = bool(found) and accepts(shapes_of(candidate, _OTHER_SIZES))
        template = candidate if any_size else generalized(shapes, accepts)
        if template not in found:
            found.append(template)
        if len(found) == _ENOUGH:
            break
    return found


def candidates(count: int, random: np.random.Generator) -> Iterator[Template]:
    """Templates for `count` tensors to try, without end; simple ones first."""
    for rank in (1, 2, 3, 0):  # all of one shape
        yield (tuple(Dim(1, symbol) for symbol in range(rank)),) * count
    while True:
        ranks = random.integers(0, 4, count)
        most = int(random.integers(1, _SYMBOLS + 1))
        yield tuple(
            tuple(Dim(1, int(symbol)) for symbol in random.integers(0, most, rank))
            for rank in ranks
        )


_Place = tuple[int, int]  # of a dim: of which tensor, and the how manieth


def generalized(shapes: Shapes, accepts: Callable[[Shapes], bool]) -> Template:
    """The template of shapes that fit: which dims may be other sizes, and which change together."""
    places = [(i, j) for i, shape in enumerate(shapes) for j in range(len(shape))]
    places.sort(key=lambda place: shapes[place[0]][place[1]])  # a part before what it is part of
    dims: dict[_Place, Dim] = {}
    for place in places:
        if place in dims:
            continue
        size = shapes[place[0]][place[1]]
        rest = [one for one in places if one not in dims]
        group = _changing_together(place, rest, shapes, accepts)
        symbol = len({dim.symbol for dim in dims.values()})
        for i, j in group:
            dims[i, j] = Dim(shapes[i][j] // size, symbol)
    return tuple(
        tuple(dims.get((i, j), Dim(size, None)) for j, size in enumerate(shape))
        for i, shape in enumerate(shapes)
    )


def _changing_together(
    place: _Place, rest: Sequence[_Place], shapes: Shapes, accepts: Callable[[Shapes], bool]
) -> list[_Place]:
    """The smallest group of dims found that may have another size if all of them have; or none."""
    size = shapes[place[0]][place[1]]
    if not size:
        return []

    def fits(group: Sequence[_Place]) -> bool:
        return all(accepts(_scaled(shapes, group, size, to)) for to in (size + 5, size + 4))

    for parts in (0, 1, _MOST_PARTS):
        group = [
            (i, j) for i, j in rest
            if (i, j) == place or (shapes[i][j] % size == 0 and shapes[i][j] // size <= parts)
        ]  # fmt: skip
        without = ([one for one in group if one != other] for other in group if other != place)
        for candidate in itertools.chain([group], without):
            if fits(candidate):
                return _needed(place, candidate, fits)
    return []


def _needed(
    place: _Place, group: list[_Place], fits: Callable[[Sequence[_Place]], bool]
) -> list[_Place]:
    """A group without the dims that need not change with that of `place`."""
    rest = [one for one in group if one != place]
    by_count = (itertools.combinations(rest, count) for count in (1, 2, 3))
    # Two or three dims may need each other, and not `place`.
    for others in itertools.islice(itertools.chain.from_iterable(by_count), _MOST_GROUPS):
        fewer = [one for one in group if one not in others]
        if len(fewer) == len(group) - len(others) and fits(fewer):
            group = fewer
    return group


def _scaled(shapes: Shapes, group: Sequence[_Place], size: int, to: int) -> Shapes:
    return tuple(
        tuple(dim // size * to if (i, j) in group else dim for j, dim in enumerate(shape))
        for i, shape in enumerate(shapes)
    )
