"""The tables of docs/numerics.md are what was measured, of every function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from composite.compiler.tvm.math import elementary, exponential, trigonometry
from composite.compiler.tvm.math.accuracy import BOUNDS
from tests.exhaustive import records
from tests.exhaustive.functions import FUNCTIONS, PAIRS
from tests.exhaustive.page import tables

PATH = Path(__file__).resolve().parents[2] / "docs" / "numerics.md"
SHARED = {"sine_after"}
"""What sin and cos are made of, and are tested with."""


def test_the_tables_are_what_was_measured(golden: Callable[[str, str], None]) -> None:
    head, rest = PATH.read_text(encoding="utf-8").split("<!-- accuracy -->\n")
    tail = rest.partition("<!-- /accuracy -->")[2]
    made = f"{head}<!-- accuracy -->\n\n{tables(records.read())}\n\n<!-- /accuracy -->{tail}"
    golden(made, str(PATH))


def test_every_function_is_bounded_and_measured() -> None:
    named = {
        name
        for module in (elementary, exponential, trigonometry)
        for name, function in vars(module).items()
        if hasattr(function, "__wrapped__") and function.__module__ == module.__name__
    }
    assert "tanh" in named
    assert named - SHARED <= BOUNDS.keys()
    assert BOUNDS.keys() == FUNCTIONS.keys() | PAIRS.keys()
    measured = records.read()
    for name in BOUNDS:
        assert measured[name].keys() == {"float32", "float64", "float16", "bfloat16"}, name


def test_what_was_measured_is_within_the_bounds() -> None:
    faults = [
        fault
        for name, dtypes in records.read().items()
        for dtype, found in dtypes.items()
        for fault in records.faults(name, dtype, found)
    ]
    assert faults == []
