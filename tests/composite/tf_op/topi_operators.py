"""Operators of TOPI, TVM's library of operators, as ops beside the same in NumPy's float64.

`python -m tests.composite.tf_op.topi_operators [--seeds N]` prints by how many units in the last
place each differs at most, and in how many elements.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SHAPE = (8, 8)


class Operator(NamedTuple):
    """An operator, and what it computes.

    Attributes:
        compute: from TE tensors to one.
        reference: from arrays of float64, or of the inputs' integers, to an array.
        inputs: how many.
        domain: the numbers that inputs are drawn from, uniformly.
        ulps: the units in the last place that its result may be off.
        dtype: of its inputs.
        scale: the magnitude of what it subtracts on the way: the unit of a smaller result is that
            of this, as for tanh, which TVM computes as (1 - exp(-2x)) / (1 + exp(-2x)).
    """

    compute: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: int = 1
    domain: tuple[float, float] = (-3.0, 3.0)
    ulps: float = 0.5
    dtype: str = "float32"
    scale: float = 0.0


def _erf(x: Any) -> Any:
    from math import erf

    return np.vectorize(erf)(x)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def operators() -> dict[str, Operator]:
    """All of them by name. Those of sums and of TOPI's approximations have a bound of their own."""
    from tvm import topi

    unit, positive, above_one = (-1.0, 1.0), (0.01, 9.0), (1.0, 9.0)
    math: dict[str, Operator] = {
        "exp": Operator(topi.exp, np.exp, ulps=2),
        "fast_exp": Operator(topi.fast_exp, np.exp, ulps=4),
        "log": Operator(topi.log, np.log, domain=positive, ulps=2),
        "log2": Operator(topi.log2, np.log2, domain=positive, ulps=2),
        "log10": Operator(topi.log10, np.log10, domain=positive, ulps=2),
        "sqrt": Operator(topi.sqrt, np.sqrt, domain=positive),
        "rsqrt": Operator(topi.rsqrt, lambda x: 1 / np.sqrt(x), domain=positive, ulps=2),
        "tanh": Operator(topi.tanh, np.tanh, ulps=4, scale=1),
        "fast_tanh": Operator(topi.fast_tanh, np.tanh, ulps=8),
        "sigmoid": Operator(topi.sigmoid, lambda x: 1 / (1 + np.exp(-x)), ulps=4),
        "erf": Operator(topi.erf, _erf, ulps=4),
        "fast_erf": Operator(topi.fast_erf, _erf, ulps=8),
        "sin": Operator(topi.sin, np.sin, ulps=2),
        "cos": Operator(topi.cos, np.cos, ulps=2),
        "tan": Operator(topi.tan, np.tan, domain=unit, ulps=4),
        "asin": Operator(topi.asin, np.arcsin, domain=unit, ulps=4),
        "acos": Operator(topi.acos, np.arccos, domain=unit, ulps=4),
        "atan": Operator(topi.atan, np.arctan, ulps=4),
        "sinh": Operator(topi.sinh, np.sinh, ulps=4),
        "cosh": Operator(topi.cosh, np.cosh, ulps=4),
        "asinh": Operator(topi.asinh, np.arcsinh, ulps=4),
        "acosh": Operator(topi.acosh, np.arccosh, domain=above_one, ulps=4),
        "atanh": Operator(topi.atanh, np.arctanh, domain=(-0.9, 0.9), ulps=4, scale=1),
    }
    exact: dict[str, Operator] = {
        "identity": Operator(topi.identity, lambda x: x),
        "negative": Operator(topi.negative, np.negative),
        "abs": Operator(topi.abs, np.abs),
        "floor": Operator(topi.floor, np.floor),
        "ceil": Operator(topi.ceil, np.ceil),
        "trunc": Operator(topi.trunc, np.trunc),
        "round": Operator(topi.round, np.rint),
        "sign": Operator(topi.sign, np.sign),
        "isnan": Operator(lambda x: topi.cast(topi.isnan(x), "float32"), np.isnan),
        "isfinite": Operator(lambda x: topi.cast(topi.isfinite(x), "float32"), np.isfinite),
        "isinf": Operator(lambda x: topi.cast(topi.isinf(x), "float32"), np.isinf),
        "clip": Operator(lambda x: topi.clip(x, -1.0, 1.0), lambda x: np.clip(x, -1, 1)),
        "relu": Operator(topi.nn.relu, lambda x: np.maximum(x, 0)),
        "leaky_relu": Operator(
            lambda x: topi.nn.leaky_relu(x, 0.25), lambda x: np.where(x > 0, x, x * 0.25)
        ),
        "cast": Operator(lambda x: topi.cast(x, "int32"), np.trunc),
        "transpose": Operator(topi.transpose, np.transpose),
        "reshape": Operator(lambda x: topi.reshape(x, (4, 16)), lambda x: x.reshape(4, 16)),
        "expand_dims": Operator(lambda x: topi.expand_dims(x, 0), lambda x: x[None]),
        "flip": Operator(lambda x: topi.flip(x, 1), lambda x: x[:, ::-1]),
        "tile": Operator(lambda x: topi.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1))),
        "repeat": Operator(lambda x: topi.repeat(x, 2, 1), lambda x: np.repeat(x, 2, 1)),
        "squeeze": Operator(lambda x: topi.squeeze(topi.expand_dims(x, 1), 1), lambda x: x),
        "strided_slice": Operator(
            lambda x: topi.strided_slice(x, [1, 0], [8, 8], [2, 3]), lambda x: x[1:8:2, ::3]
        ),
        "pad": Operator(lambda x: topi.nn.pad(x, (1, 2)), lambda x: np.pad(x, ((1, 1), (2, 2)))),
        "flatten": Operator(topi.nn.flatten, lambda x: x),
        "broadcast_to": Operator(
            lambda x: topi.broadcast_to(x, (2, 8, 8)), lambda x: np.broadcast_to(x, (2, 8, 8))
        ),
        "full_like": Operator(lambda x: topi.full_like(x, 2.5), lambda x: np.full_like(x, 2.5)),
        "max": Operator(lambda x: topi.max(x, 1), lambda x: x.max(1)),
        "min": Operator(lambda x: topi.min(x, 0), lambda x: x.min(0)),
        "argmax": Operator(lambda x: topi.argmax(x, 1), lambda x: x.argmax(1)),
        "argmin": Operator(lambda x: topi.argmin(x, 0), lambda x: x.argmin(0)),
    }
    sums: dict[str, Operator] = {
        "sum": Operator(lambda x: topi.sum(x, 1), lambda x: x.sum(1), domain=positive, ulps=4),
        "prod": Operator(lambda x: topi.prod(x, 1), lambda x: x.prod(1), ulps=4),
        "cumsum": Operator(
            lambda x: topi.cumsum(x, 1), lambda x: x.cumsum(1), domain=positive, ulps=4
        ),
        "softmax": Operator(topi.nn.softmax, _softmax, ulps=8),
        "log_softmax": Operator(
            topi.nn.log_softmax, lambda x: np.log(_softmax(x)), domain=(-9.0, 9.0), ulps=4, scale=9
        ),
        "matmul": Operator(topi.matmul, np.matmul, 2, domain=positive, ulps=8),
        "dense": Operator(topi.nn.dense, lambda x, w: x @ w.T, 2, domain=positive, ulps=8),
    }
    binary: dict[str, Operator] = {
        "add": Operator(topi.add, np.add, 2),
        "subtract": Operator(topi.subtract, np.subtract, 2),
        "multiply": Operator(topi.multiply, np.multiply, 2),
        "divide": Operator(topi.divide, np.divide, 2, domain=positive),
        "floor_divide": Operator(
            topi.floor_divide, lambda x, y: np.floor(np.float32(x) / np.float32(y)), 2, positive
        ),
        "power": Operator(topi.power, np.power, 2, domain=positive, ulps=4),
        "maximum": Operator(topi.maximum, np.maximum, 2),
        "minimum": Operator(topi.minimum, np.minimum, 2),
        "mod": Operator(topi.mod, np.fmod, 2, domain=(1, 99), dtype="int32"),
        "floor_mod": Operator(topi.floor_mod, np.mod, 2, domain=(1, 99), dtype="int32"),
        "left_shift": Operator(topi.left_shift, np.left_shift, 2, domain=(0, 9), dtype="int32"),
        "right_shift": Operator(topi.right_shift, np.right_shift, 2, domain=(0, 9), dtype="int32"),
        "bitwise_and": Operator(topi.bitwise_and, np.bitwise_and, 2, (-99, 99), dtype="int32"),
        "bitwise_or": Operator(topi.bitwise_or, np.bitwise_or, 2, (-99, 99), dtype="int32"),
        "bitwise_xor": Operator(topi.bitwise_xor, np.bitwise_xor, 2, (-99, 99), dtype="int32"),
        "greater": Operator(lambda x, y: topi.cast(topi.greater(x, y), "float32"), np.greater, 2),
        "less": Operator(lambda x, y: topi.cast(topi.less(x, y), "float32"), np.less, 2),
        "equal": Operator(lambda x, y: topi.cast(topi.equal(x, y), "float32"), np.equal, 2),
        "not_equal": Operator(
            lambda x, y: topi.cast(topi.not_equal(x, y), "float32"), np.not_equal, 2
        ),
        "concatenate": Operator(
            lambda x, y: topi.concatenate([x, y], 1), lambda x, y: np.concatenate([x, y], 1), 2
        ),
        "stack": Operator(lambda x, y: topi.stack([x, y], 0), lambda x, y: np.stack([x, y]), 2),
        "where": Operator(lambda x, y: topi.where(topi.greater(x, y), x, y), np.maximum, 2),
    }
    return math | exact | sums | binary


def module(chosen: dict[str, Operator]) -> Any:
    """One library with a function for each operator."""
    import tvm
    from tvm import te

    functions = {}
    for name, operator in chosen.items():
        inputs = [te.placeholder(SHAPE, operator.dtype, f"x{i}") for i in range(operator.inputs)]
        function = te.create_prim_func([*inputs, operator.compute(*inputs)])
        functions[name] = function.with_attr("global_symbol", name)
    return tvm.compile(tvm.IRModule(functions), target=tvm.target.Target({"kind": "llvm"}))


def drawn(operator: Operator, seed: int) -> list[np.ndarray]:
    """Inputs of an operator."""
    random = np.random.default_rng(seed)
    low, high = operator.domain
    shape = (operator.inputs, *SHAPE)
    if operator.dtype != "float32":
        return list(random.integers(int(low), int(high), shape).astype(operator.dtype))
    return list(random.uniform(low, high, shape).astype(np.float32))


def ulps_off(operator: Operator, found: np.ndarray, inputs: list[np.ndarray]) -> np.ndarray:
    """By how many units in the last place each element differs from the exact result."""
    wide = [x.astype(np.float64) if x.dtype == np.float32 else x for x in inputs]
    exact = np.asarray(operator.reference(*wide), np.float64)
    assert found.shape == exact.shape, (found.shape, exact.shape)
    unit = np.spacing(np.maximum(np.abs(exact), operator.scale).astype(np.float32))
    return np.abs(found.astype(np.float64) - exact) / unit.astype(np.float64)


def main() -> int:
    """Prints each operator's difference; 1 where one is beyond its bound."""
    from composite import tf_op

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    chosen = operators()
    library = tf_op.Module(module(chosen))
    beyond = 0
    for name, operator in chosen.items():
        op = library[name]
        off = []
        for seed in range(seeds):
            inputs = drawn(operator, seed)
            off.append(ulps_off(operator, np.asarray(op(*inputs)), inputs))
        worst, rounded = max(one.max() for one in off), [int((one > 0.5).sum()) for one in off]
        beyond += worst > operator.ulps
        mark = "  BEYOND ITS BOUND" if worst > operator.ulps else ""
        print(f"{name:<14} off by {worst:.2f} ulp; not the nearest in {max(rounded)}{mark}")
    print(f"{len(chosen)} operators, {seeds} seeds, {beyond} beyond their bound")
    return int(beyond > 0)


if __name__ == "__main__":
    raise SystemExit(main())
