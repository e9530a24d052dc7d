"""What is derived of rows, and that reading them needs neither TensorFlow nor TVM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler import op_traits


def test_the_table_comes_without_tvm_or_tensorflow(run_python: Callable[..., Any]) -> None:
    run_python(
        "import sys\n"
        "from composite.compiler import op_traits\n"
        "assert op_traits.of('MatMul').family == 'contraction'\n"
        "assert not {'tvm', 'tensorflow'} & set(sys.modules), 'imported too much'\n",
        bare=True,
    )


def test_of_an_unknown_op_nothing_is_stated() -> None:
    row = op_traits.of("NoSuchOp")
    assert row == op_traits.OpTraits("NoSuchOp")
    assert not (row.moves_data or row.reads_only_shapes or row.elementwise)


@pytest.mark.parametrize("op", ["Const", "GatherV2", "PadV2", "SelectV2", "Shape", "ZerosLike"])
def test_what_moves_data(op: str) -> None:
    assert op_traits.of(op).moves_data


@pytest.mark.parametrize("op", ["AddV2", "Cast", "Maximum", "MirrorPadGrad", "ScatterNd", "While"])
def test_what_computes(op: str) -> None:
    assert not op_traits.of(op).moves_data


def test_what_reads_only_shapes() -> None:
    found = {name for name, row in op_traits.TABLE.items() if row.reads_only_shapes}
    assert found == {
        *("OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"),
        *("TensorListElementShape", "TensorListLength"),
    }
