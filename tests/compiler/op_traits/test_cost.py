"""Operations counted by hand."""

from __future__ import annotations

import pytest

from composite.compiler import op_traits
from composite.compiler.op_traits import cost


@pytest.mark.parametrize(
    ("op", "operands", "result", "flops"),
    [
        ("MatMul", [[None, 7], [7, 5]], [None, 5], 14.0),
        ("MatMul", [[None, None], [7, 5]], [None, 5], None),
        ("MatMul", [None, [7, 5]], None, None),
        ("Conv2D", [[1, 9, 9, 4], [3, 3, 4, 8]], [1, 9, 9, 8], 72.0),
        ("Conv2D", [[1, 9, 9, 4], None], None, None),
        ("Sum", [[6, 5], [1]], [6], 10.0),
        ("Sum", [[None, 5], [1]], [None], None),
        ("Mean", [[0, 5], [1]], [0], 0.0),
        ("Einsum", [[2, 3], [3, 4]], [2, 4], None),
        ("Tanh", [[6, 5]], [6, 5], 1.0),
        ("Transpose", [[6, 5], [2]], [5, 6], 0.0),
    ],
)
def test_flops_of_an_element(
    op: str, operands: list[cost.Shape], result: cost.Shape, flops: float | None
) -> None:
    found = cost.flops_per_element(op_traits.of(op), operands, result, lambda _: False)
    assert found == flops


def test_a_transposed_factor_is_summed_along_its_rows() -> None:
    asked: list[str] = []

    def flag(name: str) -> bool:
        asked.append(name)
        return True

    matmul = op_traits.of("BatchMatMulV2")
    assert cost.flops_per_element(matmul, [[2, 7, 3], [2, 7, 5]], [2, 3, 5], flag) == 14.0
    assert asked == ["adj_x"]
