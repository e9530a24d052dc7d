"""Gradients of generated programs: branches and loops in one another, to the third order.

Each is compared in float64 with the same derivative of the Python function, taken eagerly. More of
them: `python -m tests.composite.autodiff.test_gradient_programs FIRST COUNT`.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import options

pytestmark = pytest.mark.usefixtures("expansions_only")

# Beside ordinary programs: an inner function that two nodes name, loops in which an old value goes
# on as another variable, lists on the way to a loop that is kept.
SEEDS = (10, 16, 21, 3)

INPUTS = [tf.constant([0.5, 0.3], tf.float64), tf.constant([0.7, -0.2], tf.float64)]
TRIPS = tf.constant(2)

_HEAD = """from composite import Composite
import tensorflow as tf
@Composite("Generated{seed}", inputs=["x: double", "w: double", "n: int32"], outputs=["o: double"])
def op(x, w, n):
    y = x * w
    z = w
"""


class _Writer:
    """Statements over x and w, which stay, and y and z, which are assigned."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._counters = itertools.count()
        self.lines: list[str] = []

    def block(self, depth: int = 0) -> None:
        indent = "    " * (depth + 1)
        for _ in range(self._random.randint(1, 3)):
            kind = self._random.randrange(6 if depth < 2 else 2)
            target = self._random.choice("yz")
            if kind < 2:
                self.lines.append(f"{indent}{target} = {self._expression()}")
            elif kind < 4:
                self._branch(indent, depth)
            else:
                self._loop(indent, depth)

    def _branch(self, indent: str, depth: int) -> None:
        name, bound = self._random.choice("xwyz"), self._random.choice(["0.0", "0.5"])
        self.lines.append(f"{indent}if tf.reduce_sum({name}) > {bound}:")
        self.block(depth + 1)
        if self._random.random() < 0.7:
            self.lines.append(f"{indent}else:")
            self.block(depth + 1)

    def _loop(self, indent: str, depth: int) -> None:
        i = f"i{next(self._counters)}"
        if self._random.random() < 0.5:
            self.lines += [f"{indent}{i} = tf.constant(0)", f"{indent}while {i} < n:"]
            self.block(depth + 1)
            self.lines.append(f"{indent}    {i} = {i} + 1")
        else:
            self.lines.append(f"{indent}for {i} in range(tf.shape(x)[0]):")
            self.block(depth + 1)

    def _expression(self, depth: int = 0) -> str:
        kind = self._random.randrange(7 if depth < 2 else 2)
        if kind < 2:
            return self._random.choice("xwyz")
        forms = (
            "tf.sin({})",
            "({} * {})",
            "({} + 0.5 * {})",
            "tf.tanh({})",
            "tf.exp(-tf.square({}))",
        )
        form = forms[kind - 2]
        return form.format(*(self._expression(depth + 1) for _ in range(form.count("{}"))))


def program(seed: int) -> str:
    """The text of a module with an op of two vectors and a number of trips."""
    writer = _Writer(seed)
    writer.block()
    return _HEAD.format(seed=seed) + "\n".join([*writer.lines, "    return y * z + x", ""])


def differentiated(function: Callable[..., Any], order: int) -> Callable[..., Any]:
    """The sum of the derivatives by both inputs, as often as `order` says."""
    if order == 0:
        return function
    below = differentiated(function, order - 1)

    def derivative(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = below(*inputs)
        return tf.add_n(tape.gradient(y, inputs, unconnected_gradients="zero"))

    return derivative


def differences(seed: int, folder: Path) -> Iterator[str]:
    """What is wrong with the op of a seed, in eager calls and in a tf.function."""
    text = program(seed)
    path = folder / f"generated_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    order = 2 if text.count("range") + text.count("while") > 2 else 2 + seed % 2
    expected = differentiated(lambda x, w: module.op.python_function(x, w, TRIPS), order)(*INPUTS)
    own = differentiated(lambda x, w: module.op(x, w, TRIPS), order)
    for how, function in (("eager", own), ("traced", tf.function(own, autograph=False))):
        found = function(*INPUTS)
        if not np.allclose(found, expected, rtol=1e-8, atol=1e-8, equal_nan=True):
            yield f"seed {seed}, order {order}, {how}: {found} is not {expected}\n{text}"


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_programs(seed: int, tmp_path: Path) -> None:
    assert list(differences(seed, tmp_path)) == []


def main(first: int, count: int) -> int:
    """Tries the programs of many seeds; 1 if the gradient of one is wrong or raises."""
    wrong = 0
    with options(backend="tf"), tempfile.TemporaryDirectory() as made:
        for seed in range(first, first + count):
            try:
                found = list(differences(seed, Path(made)))
            except Exception as error:  # noqa: BLE001 - the next seed is tried
                found = [f"seed {seed} raised {type(error).__name__}: {str(error)[:300]}"]
            wrong += bool(found)
            print(*found, sep="\n", end="\n" * bool(found), flush=True)
    print(f"{count} programs from seed {first}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
