"""The ring that stands for floats: integers modulo 2^w, for floats of w bits.

Sums and products may be reordered there, and split, without changing a bit. Each function below
fulfils a second law: the lowest n bits of its result depend on the lowest n bits of its operands
alone. So a value that is kept in 16 bits for a while, as 16-bit floats are, is equal in its lowest
16 bits to one that was kept in 32 all along, however often each of them was rounded.

An elementary function is a permutation that its name selects, but for

- e^x, which is 5^x, so that e^(a + b) = e^a e^b;
- 1 / x, which is the inverse of x where x is odd; a factor of 2 in its lowest 16 bits becomes the
  inverse of 3, which stands for 1/2, so that 1 / (2 x) = 1/2 · 1 / x of integers below 2^15;
- those that are made of others: see :data:`MADE_OF`.

Everything works on NumPy's arrays of unsigned integers and on `traced.Traced`: arithmetic wraps.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Word = Any
"""An array of unsigned integers, or what is traced."""

BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}

_MIDDLE = 0x9E00  # the rank of 0; those of small integers follow it, or precede it
NOTHING = 1 << 16 | _MIDDLE
"""Of 32 bits: behind -infinity and before all others, and no 16-bit float."""
_HUGE = 2.0**120
"""From here on constants stand for infinities, such as the limits of dtypes do."""
_LOW = 16  # bits that decide the order first


def times(word: Word, factor: int, bits: int) -> Word:
    """Return the product with an integer of any size."""
    return word * (factor % (1 << bits))


def plus(word: Word, summand: int, bits: int) -> Word:
    """Return the sum with an integer of any size."""
    return word + summand % (1 << bits)


def inverse(word: Word, bits: int) -> Word:
    """Return 1 / x: 1/2 per factor of 2 in its lowest 16 bits, times the inverse of the rest."""
    low = word & 0xFFFF
    high, factor = word - low, (word & 0) + 1
    for count in (8, 4, 2, 1):
        mask = (1 << count) - 1
        divides = (((low & mask) + mask) >> count) ^ 1  # 1 where 2^count divides, 0 elsewhere
        low = low + divides * ((low >> count) - low)
        factor = factor * plus(times(divides, _half(bits) ** count - 1, bits), 1, bits)
    return factor * _inverse_of_odd(high + low | 1, bits)


def _inverse_of_odd(word: Word, bits: int) -> Word:
    found = (word * 3) ^ 2  # right modulo 2^5, and twice as many bits with each step
    for _ in range((bits // 5).bit_length()):
        found = found * 2 - word * found * found
    return found


def _half(bits: int) -> int:
    """Return what stands for 1/2: the inverse of 3."""
    return pow(3, -1, 1 << bits)


def power_of_five(word: Word, bits: int) -> Word:
    """Return 5^x, which stands for e^x."""
    if isinstance(word, np.ndarray):
        return _power_of_five(word, bits)
    found = (word & 1) * 4 + 1
    for i in range(1, bits - 2):
        factor = pow(5, 1 << i, 1 << bits)
        found = found * (((word >> i) & 1) * (factor - 1) + 1)
    return found


def _power_of_five(words: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Return 5^x of an array: the product of the powers for each byte of x."""
    found = np.ones_like(words)
    for i in range(0, bits, 8):
        found = found * _powers_of_byte(i, bits)[(words >> i) & 0xFF]
    return found


@functools.cache
def _powers_of_byte(i: int, bits: int) -> np.ndarray[Any, Any]:
    powers = [pow(5, byte << i, 1 << bits) for byte in range(256)]
    return np.array(powers, f"uint{bits}")


def order(word: Word, bits: int) -> Word:
    """Return what values are ordered by, as unsigned integers: their lowest 16 bits first."""
    if bits > _LOW:
        word = (word << (bits - _LOW)) | (word >> _LOW)
    return word ^ (_MIDDLE << (bits - _LOW))


def of_rank(rank: Word, bits: int) -> Word:
    """Return the value that `order` gives a rank."""
    word = rank ^ (_MIDDLE << (bits - _LOW))
    return (word >> (bits - _LOW)) | (word << _LOW) if bits > _LOW else word


def least(bits: int) -> int:  # noqa: ARG001 - as `most`
    """Return the value that is before all others, which stands for -infinity."""
    return _MIDDLE


def most(bits: int) -> int:
    """Return the value that is behind all others, which stands for infinity."""
    low = _MIDDLE ^ ((1 << _LOW) - 1)
    return (((1 << (bits - _LOW)) - 1) << _LOW | low) if bits > _LOW else low


def named(name: str) -> Callable[..., Word]:
    """Return the function of one operand or two that a name stands for."""

    def function(*operands: Word, bits: int) -> Word:
        seed = zlib.crc32(name.encode())
        word: Word = None
        for i, operand in enumerate(operands):
            key = (seed * (2 * i + 0x9E3779B1) * 4 + 1) % (1 << 64)
            mixed = plus(times(operand, key | 1, bits), key >> 7, bits)
            mixed = mixed + ((mixed * mixed) | 5)
            word = mixed if word is None else word * 3 + mixed * (word | 1)
        word = word ^ (seed % (1 << bits))
        return word + ((word * word) | 5)

    return function


_PLAIN: dict[str, Callable[..., Word]] = {
    "add": lambda a, b, bits: a + b,  # noqa: ARG005
    "sub": lambda a, b, bits: a - b,  # noqa: ARG005
    "mul": lambda a, b, bits: a * b,  # noqa: ARG005
    "order": order,
    "inverse": inverse,
    "exp": power_of_five,
    "exp_of_difference": power_of_five,
}


def _neg(x: Word, bits: int) -> Word:
    return times(x, -1, bits)


def _expm1(x: Word, bits: int) -> Word:
    return plus(power_of_five(x, bits), -1, bits)


def _log1p(x: Word, bits: int) -> Word:
    return named("log")(x + 1, bits=bits)


def _softplus(x: Word, bits: int) -> Word:
    return _log1p(power_of_five(x, bits), bits)


MADE_OF: dict[str, Callable[..., Word]] = {
    "neg": _neg,
    "expm1": _expm1,
    "log1p": _log1p,
    "softplus": _softplus,
    "sigmoid": lambda x, bits: inverse(power_of_five(_neg(x, bits), bits) + 1, bits),
    "tanh_of_softplus": lambda x, bits: named("tanh")(_softplus(x, bits), bits=bits),
    "exp_of_minus_square": lambda x, bits: power_of_five(_neg(x * x, bits), bits),
    "rsqrt": lambda x, bits: inverse(named("sqrt")(x, bits=bits), bits),
    "erfc": lambda x, bits: plus(_neg(named("erf")(x, bits=bits), bits), 1, bits),
}
"""Functions that rewrites make of others, or others of them."""


def powers(x: Word, apply: Callable[..., Word]) -> dict[float, Word]:
    """Return x^y by the exponents of which it is made of products."""
    square = apply("mul", x, x)
    return {1.0: x, 2.0: square, 3.0: apply("mul", square, x), -1.0: apply("inverse", x)}


def function(name: str) -> Callable[..., Word]:
    """Return the function of one word or two, and of their bits, that has a name."""
    return _PLAIN.get(name) or MADE_OF.get(name) or named(name)


def constant(value: float, dtype: str) -> int:
    """Return what stands for a constant: an integer for itself, `inverse` of 2 for 1/2.

    NaN is 0, as 0 / 0 is.
    """
    bits = BITS[dtype]
    if math.isnan(value):
        return 0
    if abs(value) >= _HUGE:
        return most(bits) if value > 0 else least(bits)
    exact = Fraction(value)
    halves = exact.denominator.bit_length() - 1
    return exact.numerator * pow(_half(bits), halves, 1 << bits) % (1 << bits)
