"""docs/kernels.md is what the table and the lowerings say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from composite.compiler.tvm import table
from composite.compiler.tvm.ir.dtypes import DTYPES
from composite.compiler.tvm.page import dtypes_of, page

ROOT = Path(__file__).resolve().parents[3]


def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden(page(), str(ROOT / "docs" / "kernels.md"))


def test_dtypes_are_those_of_the_lowerings() -> None:
    assert dtypes_of("Exp") == ["float32", "float64", "float16", "bfloat16"]
    assert dtypes_of("All") == ["bool"]
    assert dtypes_of("GatherV2") == list(DTYPES)
    assert dtypes_of("Less") == [dtype for dtype in DTYPES if dtype != "bool"]
    assert dtypes_of("BroadcastArgs") == ["int32", "int64"]


def test_every_op_takes_something() -> None:
    nothing = [
        op for op in table.NAMES - table.CALLS - table.LOOPS - table.BRANCHES if not dtypes_of(op)
    ]
    assert nothing == [
        "Conj"
    ]  # may be among the ops that a body can reach, not in what is compiled
