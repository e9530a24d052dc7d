"""The digest of functions: what it follows, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import full_type_pb2
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.ops import function_digest

CALLS = """
function {
  signature {
    name: "outer"
    input_arg { name: "x" type: DT_FLOAT }
    output_arg { name: "y" type: DT_FLOAT }
    control_output: "told"
  }
  node_def {
    name: "sum" op: "AddV2" input: "x" input: "x"
    attr { key: "T" value { type: DT_FLOAT } }
  }
  node_def { name: "told" op: "NoOp" input: "^sum" }
  node_def {
    name: "call" op: "PartitionedCall" input: "sum:z:0" input: "^told"
    attr { key: "f" value { func { name: "inner" } } }
  }
  ret { key: "y" value: "call:output:0" }
  control_ret { key: "told" value: "told" }
}
function {
  signature {
    name: "inner"
    input_arg { name: "x" type: DT_FLOAT }
    output_arg { name: "y" type: DT_FLOAT }
  }
  node_def { name: "act" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
  ret { key: "y" value: "act:activations:0" }
}
"""


def parsed(*changes: tuple[str, str]) -> FunctionDefLibrary:
    text = CALLS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text_format.Parse(text, FunctionDefLibrary())


def digest(*changes: tuple[str, str]) -> str:
    return function_digest.digest(parsed(*changes))


@pytest.mark.parametrize(
    "change",
    [
        ('op: "Relu"', 'op: "Relu6"'),
        ('input: "sum:z:0"', 'input: "x"'),
        ("value { type: DT_FLOAT } }\n  }", "value { type: DT_HALF } }\n  }"),
        ('input: "^told"', ""),
        ('value: "call:output:0"', 'value: "sum:z:0"'),
        ('control_output: "told"', 'control_output: "told" is_stateful: true'),
    ],
)  # fmt: skip
def test_another_meaning_is_another_digest(change: tuple[str, str]) -> None:
    assert digest(change) != digest()


@pytest.mark.parametrize(
    "changes",
    [
        [('"inner"', '"inner_17"')],
        [('name: "sum"', 'name: "sum_1"'), ('"sum:z:0"', '"sum_1:z:0"'), ('"^sum"', '"^sum_1"')],
        [('name: "act"', 'name: "act_2"'), ('"act:', '"act_2:')],
    ],
)
def test_names_mean_nothing(changes: list[tuple[str, str]]) -> None:
    assert digest(*changes) == digest()


def _place(library: FunctionDefLibrary) -> None:
    info = library.function[0].node_def[0].experimental_debug_info
    info.original_node_names.append("model (ops.py:1:1)")


def _shapes(library: FunctionDefLibrary) -> None:
    value = library.function[0].node_def[0].attr["_output_shapes"]
    value.list.shape.add().CopyFrom(tf.TensorShape([2]).as_proto())


def _type(library: FunctionDefLibrary) -> None:
    library.function[0].node_def[0].experimental_type.type_id = full_type_pb2.TFT_TENSOR


def _unused(library: FunctionDefLibrary) -> None:
    library.function.add().signature.name = "unused"


@pytest.mark.parametrize("note", [_place, _shapes, _type, _unused])
def test_notes_mean_nothing(note: Callable[[FunctionDefLibrary], None]) -> None:
    noted = parsed()
    note(noted)
    assert noted != parsed()
    assert function_digest.digest(noted) == digest()
