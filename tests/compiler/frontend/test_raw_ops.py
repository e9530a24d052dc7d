"""Every op of tf.raw_ops can be called by its name, with all its inputs and attributes.

Each op is the body of an op with its own declaration: what the front end knows of the declaration
(schema.py) and of the call (tf_ops.py) has to be what TensorFlow 2.21 registers.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import op_def_registry

from composite.compiler import declaration, frontend, op_traits, tfr
from composite.compiler.frontend import tf_ops
from composite.compiler.schema import OpSchema
from composite.compiler.source import CompositeSyntaxError, Source


def op_defs() -> Iterator[Any]:
    """The OpDefs of tf.raw_ops, but for those with reference inputs, which TF 2 cannot make."""
    for name in dir(tf.raw_ops):
        if name.startswith("_"):
            continue
        op_def = op_def_registry.get(name)
        if not any(arg.is_ref for arg in op_def.input_arg):
            yield op_def


def forwarding(op_def: Any) -> tuple[OpSchema, Callable[..., Any]]:
    """Return a schema like the op's, and a function that hands all its parameters on to the op."""
    own = type(op_def)()
    own.CopyFrom(op_def)
    own.name = f"Test{op_def.name}"
    schema = OpSchema.from_op_def(own)
    op = tf_ops.find(getattr(tf.raw_ops, op_def.name))
    assert op is not None, op_def.name
    python = {one.op_name: one.name for one in op.parameters}
    arguments = ", ".join(f"{python[name]}={name}" for name in schema.parameters)
    statement = "return " if op_def.output_arg else ""
    text = (
        f"def body({', '.join(schema.parameters)}):\n"
        f"    {statement}tf.raw_ops.{op_def.name}({arguments})\n"
    )
    file = f"<raw op {op_def.name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"tf": tf, "__name__": "raw"}
    exec(compile(text, file, "exec"), namespace)
    return schema, namespace["body"]


@pytest.mark.slow
def test_every_raw_op_is_called_with_all_it_declares() -> None:
    random, compiled = [], 0
    for op_def in op_defs():
        schema, body = forwarding(op_def)
        source = Source.of(body)
        declaration.check(schema, source)
        if tf_ops.random_advice(OpSchema.from_op_def(op_def)) is not None:
            with pytest.raises(CompositeSyntaxError, match="keeps its own random state"):
                frontend.translate(source, schema, lambda _: None)
            random.append(op_def.name)
            continue
        module = frontend.translate(source, schema, lambda _: None)
        called = [op.attributes["op"].value for op in tfr.calls(module)]
        assert called == [op_def.name]
        tfr.optimize(module)
        assert tfr.serialize(module, schema).function
        compiled += 1
    # Of 1462 ops in TF 2.21, 101 have reference inputs.
    assert compiled > 1300
    assert set(random) > {row.name for row in op_traits.TABLE.values() if row.stateless_twin} - {
        "Multinomial"
    }


@pytest.mark.parametrize("name", ["MatMul", "LRN", "FFT3D", "RFFT", "IRFFT2D", "FIFOQueueV2", "Qr"])
def test_acronyms_are_names_like_others(name: str) -> None:
    op = tf_ops.find(getattr(tf.raw_ops, name))
    assert op is not None
    assert op.name == name


def test_every_kind_of_attribute_is_declared_by_some_raw_op() -> None:
    """So that the test above is one of every kind: all that an AttrValue can hold."""
    kinds = {field.name for field in attr_value_pb2.AttrValue.DESCRIPTOR.fields}
    declared = {attr.type for op_def in op_defs() for attr in op_def.attr}
    assert kinds >= {"s", "i", "f", "b", "type", "shape", "tensor", "list", "func"}
    scalars = {"string", "int", "float", "bool", "type", "shape", "tensor", "func"}
    assert declared >= scalars
    assert {f"list({kind})" for kind in scalars} - declared == {"list(bool)", "list(tensor)"}
