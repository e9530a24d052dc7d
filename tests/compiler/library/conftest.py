"""Calls of the library's functions, compiled to an op, as Python, and TensorFlow's own."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.compiler import library
from composite.compiler.library.names import Entry

_numbers = itertools.count()


@dataclasses.dataclass
class Case:
    """A body of one expression, such as "tf.matmul(x, y)", over the inputs x, y and z."""

    text: str
    path: Path
    _ops: dict[tuple[str, ...], Any] = dataclasses.field(default_factory=dict)

    def body(self) -> Callable[..., Any]:
        """Import the body from a file."""
        names = [name for name in "xyz" if re.search(rf"\b{name}\b", self.text)]
        text = f"def body({', '.join(names)}):\n    return {self.text}\n"
        self.path.write_text(text, encoding="utf-8")
        namespace: dict[str, Any] = {"tf": tf, "np": np, "__name__": self.path.stem}
        exec(compile(text, str(self.path), "exec"), namespace)
        return namespace["body"]

    def op(self, inputs: Sequence[Any], *dtypes: str) -> Any:
        """Make an op of the body, for inputs of these dtypes and results of `dtypes`."""
        types = tuple(one.dtype.name for one in inputs)
        if types not in self._ops:
            decorate = composite.Composite(
                f"LibraryCase{next(_numbers)}",
                inputs=[f"{name}: {type_}" for name, type_ in zip("xyz", types, strict=False)],
                outputs=[f"o{index}: {dtype}" for index, dtype in enumerate(dtypes)],
            )
            self._ops[types] = decorate(self.body())
        return self._ops[types]

    def check(self, *values: Any, traced: bool = False) -> None:
        """Compare op, Python and TensorFlow: dtype, shape and every bit but those of a NaN.

        `traced` says to call the op in functions as well, with unknown dims and an unknown rank.
        """
        inputs = [tf.constant(value) for value in values]
        named = dict(zip("xyz", inputs, strict=False))
        expected = _flat(eval(self.text, {"tf": tf, "np": np}, named))
        python = eval(with_ours(self.text), {"tf": tf, "np": np, "ours": ours}, named)
        op = self.op(inputs, *(one.dtype.name for one in expected))
        # The programs are what is tested here: expansions, with no kernels compiled behind them.
        with composite.options(backend="tf"):
            results = {"op": op(*inputs), "python": python}
            for how, specs in _unknown(inputs).items() if traced else ():
                results[how] = tf.function(op.__call__, input_signature=specs)(*inputs)
        for how, result in results.items():
            for one, wanted in zip(_flat(result), expected, strict=True):
                assert one.dtype == wanted.dtype, how
                np.testing.assert_array_equal(numbers(one), numbers(wanted), err_msg=how)

    def check_gradient(self, *values: Any, rtol: float = 1e-5) -> None:
        """Compare the gradient of the op with that of TensorFlow's function, NaNs included."""
        inputs = [tf.constant(value) for value in values]
        named = dict(zip("xyz", inputs, strict=False))
        results = _flat(eval(self.text, {"tf": tf, "np": np}, named))
        op = self.op(inputs, *(one.dtype.name for one in results))
        expected = _gradient(lambda: eval(self.text, {"tf": tf, "np": np}, named), inputs)
        with composite.options(backend="tf"):
            found = _gradient(lambda: op(*inputs), inputs)
        for one, wanted in zip(found, expected, strict=True):
            assert (one is None) == (wanted is None)
            if one is not None:
                np.testing.assert_allclose(numbers(one), numbers(wanted), rtol=rtol, atol=1e-30)


def _gradient(call: Callable[[], Any], inputs: Sequence[Any]) -> list[Any]:
    """The gradients of random multiples of the results, in the inputs; none without a result."""
    random = np.random.default_rng(9)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        results = [one for one in _flat(call()) if one.dtype.is_floating]
        weights = [tf.constant(random.standard_normal(y.shape), y.dtype) for y in results]
    return [
        one if one is None else tf.convert_to_tensor(one)
        for one in tape.gradient(results, inputs, weights)
    ]


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _unknown(inputs: Sequence[Any]) -> dict[str, list[Any]]:
    return {
        "unknown dims": [tf.TensorSpec([None] * one.shape.rank, one.dtype) for one in inputs],
        "unknown rank": [tf.TensorSpec(None, one.dtype) for one in inputs],
    }


def numbers(tensor: Any) -> Any:
    """Give a tensor to NumPy, which does not know bfloat16's NaN."""
    exact = tf.cast(tensor, tf.float32) if tensor.dtype == tf.bfloat16 else tensor
    return exact.numpy()


def ours(function: Any) -> Any:
    """Give the library's function for one of TensorFlow's, if there is one."""
    entry = library.find(function)
    if entry is None:
        return function
    return with_list(entry) if entry.rest else entry.function


def with_list(entry: Entry) -> Callable[..., Any]:
    """Call a function of the library as TensorFlow's is called, its list as arguments."""
    position = list(inspect.signature(entry.function).parameters).index(entry.rest)

    def call(*arguments: Any, **keywords: Any) -> Any:
        return entry.function(*arguments[:position], list(arguments[position:]), **keywords)

    return call


def with_ours(text: str) -> str:
    """Have an expression call the library's functions.

    >>> with_ours("tf.exp(tf.abs(x))")
    'ours(tf.exp)(ours(tf.abs)(x))'
    """
    return re.sub(r"\btf\.[\w.]+(?=\()", lambda found: f"ours({found[0]})", text)


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """`case("tf.exp(x)").check(value)` compares the three; an op is made once for a text."""
    folder = tmp_path_factory.mktemp("library")
    cases: dict[str, Case] = {}

    def case_(text: str) -> Case:
        return cases.setdefault(text, Case(text, folder / f"case_{len(cases)}.py"))

    return case_
