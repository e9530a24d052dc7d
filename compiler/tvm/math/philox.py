"""Philox 4x32-10, the generator of TensorFlow's stateless random ops.

Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3". A counter of 128 bits and a key
of 64 make a group of four words. Two lanes of 64 bits hold the four words of a state, so that a
round is one product, one shuffle and two exclusive ors.
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import convert, with_lanes
from composite.compiler.tvm.tir.block import Block, const, spread

WORDS = 4
"""Words of a group."""

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)  # by which the words of the key grow from round to round
_REVERSED = (3, 2, 1, 0)
_HIGHEST = 1 << 63


def random_words(
    block: Block, key: Expr, counter: tuple[Expr, Expr], first: Expr, groups: int
) -> Expr:
    """Return the words of some groups, a vector of uint32.

    Args:
        block: Where it is computed.
        key: uint64.
        counter: Its lower and its upper half, uint64.
        first: The number of the first group, int64: what is added to the counter.
        groups: How many groups follow each other.
    """
    state = _first_state(block, counter, first, groups)
    products = _alternating([const(m, "uint64") for m in _MULTIPLIERS], groups)
    halves = _low(key), key >> const(32, "uint64")
    order = [WORDS * g + i for g in range(groups) for i in _REVERSED]
    for turn in range(_ROUNDS):
        keys = [_low(k + const(turn * s, "uint64")) for k, s in zip(halves, _STEPS, strict=True)]
        made = block.let(_low(state) * products)
        swapped = tirx.Shuffle([tirx.reinterpret(f"uint32x{len(order)}", made)], order)
        mixed = block.let(tirx.reinterpret(f"uint64x{2 * groups}", block.let(swapped)))
        state = block.let(mixed ^ _high(state) ^ block.let(_alternating(keys, groups)))
    return block.let(tirx.reinterpret(f"uint32x{len(order)}", state))


def random_pairs(
    block: Block, key: Expr, counter: tuple[Expr, Expr], first: Expr, groups: int
) -> Expr:
    """Return for each word of some groups the pair that it is one of, a vector of uint64.

    The lower half is the first word, the upper half the second one, but for the highest bit, which
    says which of them the word is. Arguments as those of `random_words`.
    """
    words = random_words(block, key, counter, first, groups)
    pairs = block.let(tirx.reinterpret(f"uint64x{2 * groups}", words))
    twice = block.let(tirx.Shuffle([pairs, pairs], [i // 2 for i in range(WORDS * groups)]))
    vector = with_lanes("uint64", twice)
    which = [const(i, "uint64") for i in (0, _HIGHEST)]
    return block.let((twice & const(_HIGHEST - 1, vector)) | _alternating(which, 2 * groups))


def _first_state(block: Block, counter: tuple[Expr, Expr], first: Expr, groups: int) -> Expr:
    """Return the counters of groups, each as its lower and its upper half."""
    places = tirx.Ramp(first, const(1, "int64"), groups) if groups > 1 else first
    number = block.let(convert(places, "uint64"))
    low, high = (spread(half, groups) for half in counter)
    # A sum of 32 bits each, and what it carries: TVM takes it that sums do not overflow.
    words = []
    carry = None
    for own, added in (
        (_low(low), _low(number)), (_high(low), _high(number)), (_low(high), None),
        (_high(high), None),
    ):  # fmt: skip
        total = own if added is None else own + added
        total = block.let(total if carry is None else total + carry)
        words.append(block.let(_low(total)))
        carry = _high(total)
    halves = [
        block.let(words[i] | (words[i + 1] << const(32, with_lanes("uint64", number))))
        for i in (0, 2)
    ]
    order = [half * groups + g for g in range(groups) for half in range(2)]
    return block.let(tirx.Shuffle(halves, order))


def _alternating(pair: list[Expr], groups: int) -> Expr:
    return tirx.Shuffle(pair * groups, list(range(2 * groups)))


def _low(x: Expr) -> Expr:
    """Return the lower 32 bits of 64."""
    return x & const(0xFFFFFFFF, with_lanes("uint64", x))


def _high(x: Expr) -> Expr:
    """Return the upper 32 bits of 64."""
    return x >> const(32, with_lanes("uint64", x))
