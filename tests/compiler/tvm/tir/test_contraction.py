"""Which products and sums become one operation, and which are kept apart."""

from __future__ import annotations

import pytest
import tvm
from tvm import tirx

from composite.compiler.tvm.tir.contraction import Contraction
from composite.compiler.tvm.tir.stand_ins import Expr, StandIns

X, Y, Z = (tirx.Var(name, "float32") for name in "xyz")
N = tirx.Var("n", "int32")
FUSED, FENCE = "llvm.fma", "llvm.arithmetic.fence"


def _names(value: Expr) -> list[str]:
    """The intrinsics of a call and of its arguments, the outermost first."""
    if not hasattr(value, "args"):
        parts = [getattr(value, part) for part in ("a", "b") if hasattr(value, part)]
        return [name for part in parts for name in _names(part)]
    name = tvm.get_global_func("target.llvm_get_intrinsic_name")(int(value.args[0]))
    return [str(name), *(n for argument in value.args[1:] for n in _names(argument))]


def contracted(value: Expr) -> list[str]:
    """The intrinsics in what an expression becomes."""
    return _names(Contraction(StandIns()).of(value))


@pytest.mark.parametrize("value", [X * Y + Z, Z + X * Y, X * Y - Z, Z - X * Y])
def test_a_product_in_a_sum_is_one_operation(value: Expr) -> None:
    assert contracted(value) == [FUSED]


def test_a_product_alone_is_not_combined_with_what_reads_it() -> None:
    assert contracted(X * Y) == [FENCE]


def test_of_two_products_the_first_is_taken() -> None:
    assert contracted(X * Y + Y * Z) == [FUSED, FENCE]


def test_a_chain_keeps_its_order() -> None:
    assert contracted(X + X * Y + Y * Z) == [FUSED, FUSED]


def test_operands_of_others_are_looked_at() -> None:
    assert contracted((X * Y + Z) / X) == [FUSED]


@pytest.mark.parametrize("value", [X + Y, N * N + N, X / Y])
def test_all_else_stays(value: Expr) -> None:
    assert Contraction(StandIns()).of(value) is value


def test_what_stands_for_an_expression_stands_for_what_it_becomes() -> None:
    stand_ins = StandIns()
    value = stand_ins.add(X * Y, Z)
    assert stand_ins.of(Contraction(stand_ins).of(value)) is Z
