"""Inputs on which a kernel may go wrong where it is right on ordinary numbers.

Magnitudes are such that a product of four inputs is still a normal number of the dtype, so that
what overflows does so in the expansion as well. Integers are 0 and 1, which are in range wherever
one is an index, a flag or a count, and in draws of their own anything that the expansion takes.

Not for: what is made of the outputs (`verify`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import tensorflow as tf

from composite.reference import floats

Array = np.ndarray[Any, Any]

# Elements of all inputs up to which every kind is drawn. Beyond, or where the expansion takes long,
# only the first two of them and one with special numbers are, since the reference in float64 takes
# longer than compiling does.
MANY = 1 << 16
# Numbers of an array that are drawn; larger arrays repeat them. A prime: no two rows, columns or
# blocks of an array are the same.
_DRAWN = 262_139
_MATRIX = 2  # dimensions
_MOST_SPECIAL = 4  # inputs that get infinities and NaNs, one after the other


class Draw(NamedTuple):
    """Inputs of one kind."""

    kind: str  # for people: "inputs of mixed magnitudes"
    arrays: list[Array]
    # Whether infinities and NaNs are among them, which must come out where the expansion has them.
    special: bool = False
    # Whether a loop takes what it made again: infinities of one trip meet in the next, and
    # roundings decide which of them become NaNs.
    fed_back: bool = False
    # Whether denormals are, which TensorFlow's ops for float32 and float64 treat in other ways.
    denormal: bool = False
    # Whether the expansion may refuse them: an integer may be an index that is out of range.
    refusable: bool = False
    # By the inputs that are sizes, scalars, their values.
    sizes: Mapping[int, int] = MappingProxyType({})

    def with_sizes(self, sizes: Mapping[int, int]) -> Draw:
        """The same with these values of inputs that are sizes."""
        arrays = [
            np.asarray(sizes[i], x.dtype) if i in sizes else x for i, x in enumerate(self.arrays)
        ]
        return self._replace(arrays=arrays, sizes=sizes)

    def with_absolute(self, inputs: Collection[int]) -> Draw:
        """The same with these inputs not below zero, but for whole numbers."""
        if self.kind in _WHOLE:
            return self
        arrays = [np.abs(x) if i in inputs else x for i, x in enumerate(self.arrays)]
        return self._replace(arrays=arrays)

    def with_places(self, inputs: Collection[int]) -> Draw:
        """The same with 0 and 1 in these inputs, as integers are."""
        arrays = [(x > 0).astype(x.dtype) if i in inputs else x for i, x in enumerate(self.arrays)]
        return self._replace(arrays=arrays)

    def milder(self) -> Draw:
        """The same with all magnitudes nearer to 1, those that nearly cancel still near."""
        return self._replace(arrays=[_milder(x) for x in self.arrays])


def draws(  # noqa: PLR0913 - of which tensors, how many, and what is computed with them
    dtypes: Sequence[tf.DType],
    shapes: Sequence[tuple[int, ...]],
    seed: int,
    *,
    all_kinds: bool,
    takes_long: Callable[[], bool] = lambda: False,
    fed_back: bool = False,
    tensor_float_32: bool = False,
) -> Iterator[Draw]:
    """Inputs of each kind; ordinary and small ones alone unless `all_kinds`.

    The results of small inputs lie between constants such as 0 and 1; few ordinary ones do.

    takes_long: whether the expansion does, which is asked after the first draw.
    fed_back: whether a loop multiplies what it made with inputs again. Matrices are then as those
        that are trained, lest each trip makes any rounding error larger.
    tensor_float_32: whether factors of products have 10 bits of mantissa. Some inputs then have no
        more, so that what is allowed for their rounding excuses nothing else.
    """
    random = np.random.default_rng(seed)
    arrays = _arrays(_shifted, dtypes, shapes, random, fed_back=fed_back)
    yield Draw("ordinary inputs", arrays)
    floating = [i for i, dtype in enumerate(dtypes) if dtype.is_floating]
    small = sum(int(np.prod(shape)) for shape in shapes) <= MANY and not takes_long()
    kinds: dict[str, Callable[..., Array]] = {}
    kinds |= {"inputs of ten bits": _of_ten_bits} if tensor_float_32 else {}
    kinds |= _kinds(all_kinds=all_kinds, small=small) if floating else {}
    if len({(dtypes[i], shapes[i]) for i in floating}) == len(floating):
        kinds.pop("equal inputs", None)
    share = {"equal inputs": 1.0, "inputs of mixed magnitudes": 0.0 if small else 0.25}
    if tf.float64 in dtypes:
        # An ELU of TensorFlow's, exp(x) - 1, has few right digits there: no reference for doubles.
        kinds.pop("small inputs", None)
    for kind, draw in kinds.items():
        arrays = _arrays(draw, dtypes, shapes, random, fed_back=fed_back)
        _make_equal(arrays, random, share.get(kind, 0.0))
        yield Draw(kind, arrays, denormal=draw is _denormals)
    if not all_kinds:
        return
    yield from _of_integers(dtypes, shapes, random, fed_back=fed_back)
    if not small and floating:
        arrays = _arrays(_ordinary, dtypes, shapes, random, fed_back=fed_back)
        for i in floating:
            _put_specials(arrays[i], random)
        kind = "inputs with special numbers"
        yield Draw(kind, arrays, special=True, fed_back=fed_back, denormal=True)
    if not small:
        return
    for i in floating[:_MOST_SPECIAL]:
        for special in (np.inf, -np.inf, np.nan):
            arrays = _arrays(_ordinary, dtypes, shapes, random, fed_back=fed_back)
            if arrays[i].size:
                arrays[i].flat[random.integers(arrays[i].size)] = special
                kind = f"inputs with a {special} in input {i}"
                yield Draw(kind, arrays, special=True, fed_back=fed_back)


def _kinds(*, all_kinds: bool, small: bool) -> dict[str, Callable[..., Array]]:
    if all_kinds:
        return {"inputs of mixed magnitudes": _mixed} | (_OTHERS if small else {})
    return {"small inputs": _small} if small else {}


def without_zeros(draw: Draw) -> Draw:
    """The draw with ones for the zeros among the integers, which may be divided by."""
    return _with_integers(draw, lambda x: np.where(x == 0, x.dtype.type(1), x))


def with_zeros(draw: Draw) -> Draw:
    """The draw with zeros for all integers, which are in range of a size of 1 as well."""
    return _with_integers(draw, np.zeros_like)


def _with_integers(draw: Draw, other: Callable[[Array], Array]) -> Draw:
    arrays = [x if floats.is_floating(x) or x.dtype == np.bool_ else other(x) for x in draw.arrays]
    return draw._replace(arrays=arrays).with_sizes(draw.sizes)


def _milder(array: Array) -> Array:
    if not floats.is_floating(array):
        return array
    wide = array.astype(np.result_type(array, np.float32))
    return np.copysign(np.sqrt(np.abs(wide)), wide).astype(array.dtype)


def _make_equal(arrays: list[Array], random: np.random.Generator, share: float) -> None:
    """Give arrays of one shape and dtype the same elements, in a share of the places."""
    if not share:
        return
    first: dict[Any, Array] = {}
    for i, array in enumerate(arrays):
        model = first.setdefault((array.shape, array.dtype), array)
        if model is not array and floats.is_floating(array):
            arrays[i] = np.where(random.random(array.shape) < share, model, array)


def _of_integers(
    dtypes: Sequence[tf.DType],
    shapes: Sequence[tuple[int, ...]],
    random: np.random.Generator,
    *,
    fed_back: bool,
) -> Iterator[Draw]:
    """Draws in which integers are more than 0 and 1: all of their range, and some small ones."""
    if not any(dtype.is_integer for dtype in dtypes):
        return
    for kind, most in _INTEGERS.items():
        arrays = _arrays(_ordinary, dtypes, shapes, random, fed_back=fed_back)
        for i, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True)):
            if dtype.is_integer:
                least, top = max(dtype.min, -most), min(dtype.max, most)
                arrays[i] = random.integers(least, top, shape, arrays[i].dtype, endpoint=True)
        yield Draw(kind, arrays, refusable=True)


def _put_specials(array: Array, random: np.random.Generator) -> None:
    """Put each special number somewhere into an array of floating numbers."""
    kind = ml_dtypes.finfo(array.dtype)
    # Whether multiples of the very largest overflow when they are added depends on their order.
    ends = [float(kind.max) ** 0.5, float(kind.tiny), float(kind.smallest_subnormal)]
    specials = [np.inf, -np.inf, np.nan, 0.0, -0.0, *ends, *(-x for x in ends)]
    places = random.choice(array.size, min(array.size, len(specials)), replace=False)
    array.reshape(-1)[places] = np.asarray(specials[: len(places)]).astype(array.dtype)


def _arrays(
    draw: Callable[..., Array],
    dtypes: Sequence[tf.DType],
    shapes: Sequence[tuple[int, ...]],
    random: np.random.Generator,
    *,
    fed_back: bool,
) -> list[Array]:
    arrays = [
        _array(draw, dtype, shape, random).astype(dtype.as_numpy_dtype, copy=False)
        for dtype, shape in zip(dtypes, shapes, strict=True)
    ]
    return [_damped(x) for x in arrays] if fed_back else arrays


def _damped(array: Array) -> Array:
    """Matrices whose products are as large as what they multiply."""
    if array.ndim < _MATRIX or not floats.is_floating(array):
        return array
    return (array / np.sqrt(max(1, array.shape[-2]))).astype(array.dtype)


def _array(
    draw: Callable[..., Array], dtype: tf.DType, shape: tuple[int, ...], random: np.random.Generator
) -> Array:
    if not dtype.is_floating:
        return random.integers(0, 2, shape)
    # Doubles are numbers of float32: the check computes with them in both.
    narrow = np.float32 if dtype == tf.float64 else dtype.as_numpy_dtype
    return np.asarray(draw(shape, ml_dtypes.finfo(narrow), random).astype(narrow, copy=False))


def _drawn(shape: tuple[int, ...]) -> int:
    """How many numbers of an array are drawn."""
    return min(int(np.prod(shape)), _DRAWN)


def _ordinary(shape: tuple[int, ...], _finfo: Any, random: np.random.Generator) -> Array:
    return np.resize(random.standard_normal(_drawn(shape)), shape)


def _shifted(shape: tuple[int, ...], finfo: Any, random: np.random.Generator) -> Array:
    """Ordinary numbers, whose mean is not zero in the second half: sums cancel in one alone."""
    values = _ordinary(shape, finfo, random)
    if shape:
        values[shape[0] // 2 :] += 1
    return values


def _of_ten_bits(shape: tuple[int, ...], finfo: Any, random: np.random.Generator) -> Array:
    return floats.in_tensor_float_32(_shifted(shape, finfo, random).astype(np.float32))


def _of_one_sign(shape: tuple[int, ...], _finfo: Any, random: np.random.Generator) -> Array:
    return np.asarray(random.uniform(0.5, 1.5, shape))


def _large(shape: tuple[int, ...], finfo: Any, random: np.random.Generator) -> Array:
    return _ordinary(shape, finfo, random).clip(-4, 4) * (_most(finfo) / 4)


def _small(shape: tuple[int, ...], finfo: Any, random: np.random.Generator) -> Array:
    return _ordinary(shape, finfo, random) * _least(finfo)


def _mixed(shape: tuple[int, ...], finfo: Any, random: np.random.Generator) -> Array:
    """All magnitudes, half of the neighbours nearly cancelling; zeros and integers between."""
    count = _drawn(shape)
    exponents = random.uniform(np.log(_least(finfo)), np.log(_most(finfo)), count)
    values = np.exp(exponents) * random.choice([-1.0, 1.0], count)
    pairs = values[: count // 2 * 2].reshape(-1, 2)
    nearly = 1 + float(finfo.eps) * random.integers(-2, 3, len(pairs))
    pairs[:, 1] = np.where(random.random(len(pairs)) < 0.5, -pairs[:, 0] * nearly, pairs[:, 1])
    plain = random.choice([0.0, -0.0, 1.0, -1.0, 2.0, 3.0], count)
    return np.resize(np.where(random.random(count) < 0.2, plain, values), shape)


def _zeros_and_ones(shape: tuple[int, ...], _finfo: Any, random: np.random.Generator) -> Array:
    return np.asarray(random.choice([0.0, -0.0, 1.0, -1.0], shape))


def _sparse(shape: tuple[int, ...], finfo: Any, random: np.random.Generator) -> Array:
    return np.where(random.random(shape) < 0.9, 0.0, _ordinary(shape, finfo, random))


def _integers(shape: tuple[int, ...], _finfo: Any, random: np.random.Generator) -> Array:
    return np.asarray(random.integers(-8, 9, shape), float)


def _denormals(shape: tuple[int, ...], finfo: Any, random: np.random.Generator) -> Array:
    """Ordinary numbers, and one in ten a denormal, whose reciprocal is finite."""
    denormal = float(finfo.tiny) * random.choice([0.5, -0.5, 0.75], shape)
    return np.where(random.random(shape) < 0.1, denormal, _ordinary(shape, finfo, random))


_WHOLE = ("zeros of both signs and ones", "integers")  # kinds
_OTHERS: dict[str, Callable[..., Array]] = {
    "large inputs": _large,
    "small inputs": _small,
    "zeros of both signs and ones": _zeros_and_ones,
    "sparse inputs": _sparse,
    "inputs of one sign": _of_one_sign,
    "equal inputs": _ordinary,
    "integers": _integers,
    "inputs with denormals": _denormals,
}


_INTEGERS = {"integers of all sizes": 1 << 63, "small integers of both signs": 8}


def _most(finfo: Any) -> float:
    return float(finfo.max) ** 0.25


def _least(finfo: Any) -> float:
    return float(finfo.tiny) ** 0.25
