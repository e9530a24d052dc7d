"""A function to compile, as the expansion of an op would be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tensorflow.core.framework import types_pb2
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.compiler.tvm import Target
from composite.compiler_process import client
from composite.compiler_process.tasks import Task


def task_of_one_op(op: str, **wanted: object) -> Task:
    """A task for a function of one op on a vector of floats."""
    library = FunctionDefLibrary()
    function = library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="x", type=types_pb2.DT_FLOAT)
    function.signature.output_arg.add(name="y", type=types_pb2.DT_FLOAT)
    node = function.node_def.add(name="n", op=op, input=["x"])
    node.attr["T"].type = types_pb2.DT_FLOAT
    function.ret["y"] = "n:0:0"
    given = {"target": Target.of("x86-64-v2", 2), **wanted}
    return client.task_of(library, [("s0",)], **given)  # type: ignore[arg-type]


@pytest.fixture
def task() -> Callable[..., Task]:
    """`task(op="Relu", **wanted)`: a task for a function of one op on a vector of floats."""

    def make(op: str = "Relu", **wanted: object) -> Task:
        return task_of_one_op(op, **wanted)

    return make
