"""Operations counted by hand."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.python.framework import op_def_registry

from composite.compiler import op_traits
from composite.compiler.op_traits import cost
from composite.compiler.tvm.read.reader import read_function


@pytest.mark.parametrize(
    ("op", "operands", "results", "operations"),
    [
        ("MatMul", [[4, 7], [7, 5]], [[4, 5]], 20 * 14.0),
        ("MatMul", [[4, None], [7, 5]], [[4, 5]], None),
        ("MatMul", [None, [7, 5]], [None], None),
        ("Conv2D", [[1, 9, 9, 4], [3, 3, 4, 8]], [[1, 9, 9, 8]], 648 * 72.0),
        ("Conv2D", [[1, 9, 9, 4], None], [None], None),
        ("Sum", [[6, 5], [1]], [[6]], 6 * 10.0),
        ("Sum", [[None, 5], [1]], [[None]], None),
        ("Mean", [[0, 5], [1]], [[0]], 0.0),
        ("Einsum", [[2, 3], [3, 4]], [[2, 4]], None),
        ("AddV2", [[6, 5], [5]], [[6, 5]], 30.0),
        ("Exp", [[6, 5]], [[6, 5]], 30 * 18.0),
        ("Exp", [[None, 5]], [[None, 5]], None),
        ("ArgMax", [[6, 5], []], [[6]], 30.0),
        ("Transpose", [[6, 5], [2]], [[5, 6]], 0.0),
    ],
)
def test_operations_of_a_call(
    op: str, operands: list[cost.Shape], results: list[cost.Shape], operations: float | None
) -> None:
    found = cost.operations(op_traits.of(op), operands, results, lambda _: False)
    assert found == operations


def test_a_transposed_factor_is_summed_along_its_rows() -> None:
    asked: list[str] = []

    def flag(name: str) -> bool:
        asked.append(name)
        return True

    matmul = op_traits.of("BatchMatMulV2")
    found = cost.operations(matmul, [[2, 7, 3], [2, 7, 5]], [[2, 3, 5]], flag)
    assert found == 30 * 14.0
    assert asked == ["adj_x"]


UNARY = [
    row.name
    for row in op_traits.TABLE.values()
    if row.family in {"unary", "activation"} and row.elementwise and row.operations > 1
]


@pytest.mark.parametrize("op", UNARY)
def test_rows_and_lowerings_count_alike(op: str) -> None:
    """The lowering knows how many instructions it writes; the row is for those without TVM."""
    function = tf.function(lambda x: getattr(tf.raw_ops, op)(**{_operand(op): x}), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec([4]))
    library = FunctionDefLibrary(function=[concrete.function_def])
    (output,) = read_function(library, [[4]]).outputs
    assert output.node.cost == op_traits.of(op).operations


def _operand(op: str) -> str:
    name: str = op_def_registry.get(op).input_arg[0].name
    return name


def test_what_jumps() -> None:
    jumping = {row.name for row in op_traits.TABLE.values() if row.jumps}
    assert {"Sign", "Floor", "ReluGrad", "MaxPoolGrad"} <= jumping
    assert not jumping & {"Relu", "Maximum", "Abs", "Tanh"}


def test_what_ends_at_zero() -> None:
    ending = {row.name for row in op_traits.TABLE.values() if row.ends_at_zero}
    assert ending == {"Sqrt", "Rsqrt", "Log", "Log1p", "Pow"}
