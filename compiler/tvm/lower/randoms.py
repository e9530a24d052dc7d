"""Random numbers that depend on a key and a counter alone, with TensorFlow's bits."""

from __future__ import annotations

import numpy as np
from tvm import tirx

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import graph, views
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Tensor
from composite.compiler.tvm.lower.static import as_known, known_dims, known_ints
from composite.compiler.tvm.math.elementary import log
from composite.compiler.tvm.math.numeric import add, bits, convert, larger, like, multiply_add
from composite.compiler.tvm.math.philox import random_words
from composite.compiler.tvm.math.trigonometry import sine_after
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block, const

_ALGORITHMS = (1, 3)  # Philox, and the one that the device chooses, which is Philox
_SEED_KEY = 0x02461E293EC8F720  # TensorFlow's, for the words that it makes of a seed
_BITS = {"float32": 23, "float16": 10, "bfloat16": 7}  # of a mantissa
_COST = 12
_LEAST = 1e-7  # of what TensorFlow takes the logarithm of
_TURN = (6.2831855, 6.283185307179586 - 6.2831854820251465)  # as float32, and what it lacks


def _lower_key_counter(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower StatelessRandomGetKeyCounter: a group of words of the seed, one of 0 among them."""
    seed = as_known(inputs[0])
    node.require(seed.dtype, "int32", "int64")
    if seed.shape != (2,):
        raise NotCovered(f"{node.op}: a seed of shape {seed.shape}")
    seeds = tuple(views.select(seed, 0, i) for i in range(2))
    key, last = (pointwise(node.op, _half(i), seeds, "uint64", cost=_COST) for i in range(2))
    zero = graph.constant(np.zeros(1, np.uint64), "uint64")
    counter = views.concat([zero, graph.reshape(last, (1,))], 0, node.op)
    return [graph.reshape(key, (1,)), counter]


def _half(number: int) -> Body:
    """Return the body that makes two of the four words."""

    def body(block: Block, low: Expr, high: Expr) -> Expr:
        counter = (block.let(convert(low, "uint64")), block.let(convert(high, "uint64")))
        words = random_words(block, const(_SEED_KEY, "uint64"), counter, const(0, "int64"), 1)
        return tirx.Shuffle([block.let(tirx.reinterpret("uint64x2", words))], [number])

    return body


def _words(node: OpNode, inputs: list[Tensor], *, pairs: bool = False) -> Tensor:
    """Return a word for each element that is drawn, or the pair that its word is one of."""
    shape, key, counter, algorithm = inputs[:4]
    sizes = known_dims(node, shape, "shape")
    if known_ints(node, algorithm, "algorithm")[0] not in _ALGORITHMS:
        raise NotCovered(f"{node.op}: an algorithm other than Philox")
    if key.shape != (1,) or counter.shape != (2,):
        raise NotCovered(f"{node.op}: a key of shape {key.shape}, a counter of {counter.shape}")
    low, high = (views.select(counter, 0, i) for i in range(2))
    words = views.RandomWords(views.select(key, 0, 0), low, high, pairs)
    return Tensor(sizes, "uint64" if pairs else "uint32", words)


def _fraction(word: Expr, bits: int) -> Expr:
    """Return the number, float32, from 0 on and below 1 that the lower bits of a word are."""
    number = convert(convert(word & like((1 << bits) - 1, word), "int32"), "float32")
    return number * like(2.0**-bits, number)


def _lower_uniform(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower StatelessRandomUniformV2: the lower bits of a word are a mantissa."""
    dtype = node.dtype("dtype")
    node.require(dtype, *_BITS)

    def body(_: Block, word: Expr) -> Expr:
        return _fraction(word, _BITS[dtype])

    return [pointwise(node.op, body, (_words(node, inputs),), dtype, cost=_COST)]


def _lower_normal(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower StatelessRandomNormalV2: Box and Muller's two numbers of two words, in float32."""
    dtype = node.dtype("dtype")
    node.require(dtype, *_BITS)

    def body(block: Block, pair: Expr) -> Expr:
        first = block.let(_fraction(pair, _BITS["float32"]))
        radius = block.let(log(block, larger(block, first, like(_LEAST, first))))
        radius = tirx.sqrt(radius * like(-2.0, radius))
        turn = block.let(_fraction(pair >> like(32, pair), _BITS["float32"]))
        rest = block.let(turn * like(_TURN[1], turn))  # TensorFlow multiplies with a double
        angle = block.let(multiply_add(block, turn, like(_TURN[0], turn), rest))
        is_second = convert(pair >> like(63, pair), "int32")
        return radius * sine_after(block, angle, block.let(is_second))

    words = _words(node, inputs, pairs=True)
    return [pointwise(node.op, body, (words,), dtype, cost=2 * _COST)]


def _lower_integers(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower StatelessRandomUniformIntV2: a word's rest, divided by the size of the range."""
    dtype = node.dtype("dtype")
    node.require(dtype, "int32")
    least, end = (known_ints(node, x, "range")[0] for x in inputs[4:])
    if least >= end:
        raise NotCovered(f"{node.op}: a range from {least} to {end} (TF's op reports it)")

    def body(block: Block, word: Expr) -> Expr:
        rest = bits(block.let(tirx.truncmod(word, like(end - least, word))), "int32")
        return add(block, rest, like(least, rest))

    return [pointwise(node.op, body, (_words(node, inputs),), dtype, cost=_COST)]


LOWERINGS = {
    "StatelessRandomGetKeyCounter": _lower_key_counter,
    "StatelessRandomUniformV2": _lower_uniform,
    "StatelessRandomUniformIntV2": _lower_integers,
    "StatelessRandomNormalV2": _lower_normal,
}
