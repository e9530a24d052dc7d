"""The laws that the ring keeps, which rewrites of kernels rely on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composite.compiler.tvm.algebra import ring
from composite.reference import ring_words as w
from composite.reference.ring_words import Words, like, of

FUNCTIONS = ("exp", "inverse", "tanh", "log", "sigmoid", "softplus", "erfc", "rsqrt", "neg")
NUMBERS = st.integers(0, 2**64 - 1)


def words(number: int, bits: int = 32) -> Words:
    return np.array([number % 2**bits], f"uint{bits}")


@settings(deadline=None)
@given(NUMBERS, st.sampled_from(FUNCTIONS), st.sampled_from([(64, 32), (64, 16), (32, 16)]))
def test_low_bits_depend_on_low_bits(number: int, name: str, bits: tuple[int, int]) -> None:
    wide, narrow = bits
    (of_wide,), (of_narrow,) = of(name)(words(number, wide)), of(name)(words(number, narrow))
    assert int(of_wide) % 2**narrow == int(of_narrow)


@settings(deadline=None)
@given(NUMBERS, NUMBERS, st.sampled_from([16, 32, 64]))
def test_an_exponential_of_a_sum_is_a_product(a: int, b: int, bits: int) -> None:
    x, y = words(a, bits), words(b, bits)
    assert of("exp")(x + y) == of("exp")(x) * of("exp")(y)


@settings(deadline=None)
@given(NUMBERS, st.sampled_from([16, 32, 64]))
def test_an_odd_number_times_its_inverse_is_one(number: int, bits: int) -> None:
    odd = words(number, bits) | 1
    assert odd * of("inverse")(odd) == 1


@settings(deadline=None)
@given(st.integers(1, 255), st.integers(0, 7), st.sampled_from(list(ring.BITS)))
def test_division_by_a_power_of_two_is_a_product(number: int, power: int, dtype: str) -> None:
    bits = ring.BITS[dtype]
    whole, part = words(number << power, bits), words(number, bits)
    assert of("inverse")(whole) == of("inverse")(part) * ring.constant(2.0**-power, dtype)


@settings(deadline=None)
@given(NUMBERS, NUMBERS, st.sampled_from([16, 32, 64]))
def test_the_order_is_total_and_that_of_small_integers(a: int, b: int, bits: int) -> None:
    x, y = words(a, bits), words(b, bits)
    assert w.before(x, y) + w.before(y, x) == (x != y)
    assert ring.of_rank(of("order")(x), bits) == x
    small, larger = sorted((a % 200 - 100, b % 200 - 100))
    assert w.before(like(float(small), x), like(float(larger), x)) == (small < larger)
    assert not w.before(x, words(ring.least(bits), bits))
    assert not w.before(words(ring.most(bits), bits), x)


@settings(deadline=None)
@given(NUMBERS, NUMBERS)
def test_the_larger_of_wide_numbers_has_the_low_bits_of_the_larger(a: int, b: int) -> None:
    wide, narrow = w.larger(words(a), words(b)), w.larger(words(a, 16), words(b, 16))
    assert int(wide[0]) % 2**16 == int(narrow[0])


@settings(deadline=None)
@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.sampled_from(list(ring.BITS)))
def test_integers_and_halves_stand_for_themselves(a: int, b: int, dtype: str) -> None:
    def constant(value: float) -> int:
        return ring.constant(value, dtype)

    size = 1 << ring.BITS[dtype]
    assert constant(a + b) == (constant(a) + constant(b)) % size
    odd, other = 2 * a + 1, 2 * b + 1
    assert constant(odd * other * 0.25) == constant(odd * 0.5) * constant(other * 0.5) % size


@pytest.mark.parametrize("value", [float("inf"), 3.4028234663852886e38])
def test_limits_are_the_ends_of_the_order(value: float) -> None:
    assert ring.constant(value, "float32") == ring.most(32)
    assert ring.constant(-value, "float32") == ring.least(32)


def test_functions_differ() -> None:
    x = np.arange(1000, dtype=np.uint32)
    tables = {name: of(name)(x).tobytes() for name in FUNCTIONS}
    assert len(set(tables.values())) == len(FUNCTIONS)
    assert len(np.unique(of("tanh")(x))) == len(x)
