"""The op table: names without TVM, and a function behind each name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tensorflow.python.framework import op_def_registry

from composite.compiler.tvm import table
from examples.blocks import ops


def test_names_come_without_tvm_or_tensorflow(run_python: Callable[..., Any]) -> None:
    run_python(
        "import sys\n"
        "from composite.compiler.tvm import table\n"
        "import composite.compiler.tvm as backend\n"
        "assert 'MatMul' in table.NAMES\n"
        "assert backend.Target.host().lanes >= 4\n"
        "assert not {'tvm', 'tensorflow'} & set(sys.modules), 'imported too much'\n",
        bare=True,
    )


def test_each_family_has_exactly_its_names() -> None:
    for family, names in table.FAMILIES.items():
        module = import_module(f"composite.compiler.tvm.lower.{family}")
        assert set(module.LOWERINGS) == set(names), family


def test_every_name_is_an_op_of_tensorflow() -> None:
    unknown = {n for n in table.NAMES if op_def_registry.get(n) is None}
    assert not unknown


def test_no_op_of_the_table_has_state() -> None:
    stateful = {n for n in table.NAMES if op_def_registry.get(n).is_stateful}
    # Of a loop and of branches it is asked whether an op within them has state.
    assert stateful <= {"StatefulPartitionedCall", "While", "If", "Case"}


def test_what_the_library_reaches_for_complex_numbers_alone_is_in_the_table() -> None:
    """Else no op that calls tf.matmul would ever be compiled without being told to."""
    for op in (ops.fused_attention, ops.fused_gelu_mlp):
        nodes = (node for f in op.program.function for node in f.node_def if "op" in node.attr)
        called = {node.attr["op"].s.decode() for node in nodes}
        assert "MatMul" in called
        assert {n for n in called if op_def_registry.get(n) is not None} <= table.NAMES
