"""Random numbers that depend on a key and a counter alone, with TensorFlow's bits."""

from __future__ import annotations

import numpy as np
from tvm import tirx

from composite.compiler.tvm.codegen.block import Block, const
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import graph, views
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Tensor
from composite.compiler.tvm.lower.static import as_known, known_dims, known_ints
from composite.compiler.tvm.math.numeric import convert, like
from composite.compiler.tvm.math.philox import random_words
from composite.compiler.tvm.read.node import OpNode

_ALGORITHMS = (1, 3)  # Philox, and the one that the device chooses, which is Philox
_SEED_KEY = 0x02461E293EC8F720  # TensorFlow's, for the words that it makes of a seed
_BITS = {"float32": 23, "float16": 10, "bfloat16": 7}  # of a mantissa
_COST = 12


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


def _lower_uniform(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower StatelessRandomUniformV2: the lower bits of a word are a mantissa."""
    shape, key, counter, algorithm = inputs
    dtype = node.dtype("dtype")
    node.require(dtype, *_BITS)
    sizes = known_dims(node, shape, "shape")
    if known_ints(node, algorithm, "algorithm")[0] not in _ALGORITHMS:
        raise NotCovered(f"{node.op}: an algorithm other than Philox")
    if key.shape != (1,) or counter.shape != (2,):
        raise NotCovered(f"{node.op}: a key of shape {key.shape}, a counter of {counter.shape}")
    halves = (views.select(key, 0, 0), *(views.select(counter, 0, i) for i in range(2)))
    words = Tensor(sizes, "uint32", views.RandomWords(*halves))
    bits = _BITS[dtype]

    def body(_: Block, word: Expr) -> Expr:
        mantissa = convert(word & like((1 << bits) - 1, word), "int32")
        number = convert(mantissa, "float32")
        return number * like(2.0**-bits, number)

    return [pointwise(node.op, body, (words,), dtype, cost=_COST)]


LOWERINGS = {
    "StatelessRandomGetKeyCounter": _lower_key_counter,
    "StatelessRandomUniformV2": _lower_uniform,
}
