"""What the tests of the compiler share: declarations, and a function's way to its program."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2, types_pb2

from composite.compiler import declaration, frontend, tfr
from composite.compiler.schema import OpSchema
from composite.compiler.source import Source

# The attributes that tests declare most: text of an OpDef's `attr`.
TYPE_T = 'name: "T" type: "type" allowed_values { list { type: DT_FLOAT type: DT_DOUBLE } }'


def op_def(
    name: str,
    inputs: Sequence[str] = ("x: T",),
    outputs: Sequence[str] = ("y: T",),
    attrs: Sequence[str] = (),
) -> Any:
    """Make an OpDef: inputs and outputs as "xs: N * T", attrs in the proto's text format."""
    made = op_def_pb2.OpDef(name=name)
    for field, declared in ((made.input_arg, inputs), (made.output_arg, outputs)):
        for one in declared:
            arg_name, _, type_ = one.partition(": ")
            number, star, type_attr = type_.rpartition(" * ")
            arg = field.add(name=arg_name, number_attr=number if star else "")
            if type_attr == "float":
                arg.type = types_pb2.DT_FLOAT
            else:
                arg.type_attr = type_attr
    texts = list(attrs)
    if any(": N * T" in one for one in inputs):
        texts.append('name: "N" type: "int" has_minimum: true minimum: 1')
    if any(one.endswith("T") for one in (*inputs, *outputs)):
        texts.append(TYPE_T)
    for text in texts:
        text_format.Parse(text, made.attr.add())
    return made


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A function's way through the compiler."""

    module: Any
    program: Any
    schema: OpSchema

    @property
    def text(self) -> str:
        """The module as MLIR prints it without locations."""
        return str(self.module)

    @property
    def kinds(self) -> list[str]:
        """The kinds of all nodes, function by function."""
        return [node.op for function in self.program.function for node in function.node_def]

    @property
    def called(self) -> list[str]:
        """The ops that are called, in the order of the text."""
        return [op.attributes["op"].value for op in tfr.calls(self.module)]

    @property
    def digest(self) -> str:
        return str(self.program.function[0].attr["_digest"].s.decode())


class Compile(Protocol):
    """The type of the `compile_body` fixture."""

    def __call__(
        self,
        function: Callable[..., Any],
        declared: Any = None,
        *,
        resolve: Callable[[object], Any] | None = None,
        optimize: bool = True,
    ) -> Compiled: ...


@pytest.fixture(name="op_def")
def op_def_fixture() -> Callable[..., Any]:
    return op_def


@pytest.fixture
def compile_body() -> Compile:
    """Compile a function; without an OpDef it has an input for each parameter, and one output."""

    def compile_(
        function: Callable[..., Any],
        declared: Any = None,
        *,
        resolve: Callable[[object], Any] | None = None,
        optimize: bool = True,
    ) -> Compiled:
        source = Source.of(function)
        if declared is None:
            names = [argument.id for argument in source.tree.args.args]
            declared = op_def("Test", inputs=[f"{name}: T" for name in names])
        schema = OpSchema.from_op_def(declared)
        declaration.check(schema, source)
        module = frontend.translate(source, schema, resolve or (lambda _: None))
        if optimize:
            tfr.optimize(module)
        return Compiled(module, tfr.serialize(module, schema), schema)

    return compile_


@pytest.fixture
def define(tmp_path: Path) -> Callable[..., Any]:
    """`define(text)` writes text to ops.py, runs it with tf and np, returns its function `body`."""
    count = 0

    def define_(text: str, **names: Any) -> Any:
        nonlocal count
        path = tmp_path / str(count) / "ops.py"
        count += 1
        path.parent.mkdir()
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        namespace: dict[str, Any] = {"tf": tf, "np": np, "__name__": "ops", **names}
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
        return namespace["body"]

    return define_
