"""What bodies become: the ops that are called, and the MLIR of whole bodies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.python.ops import gen_math_ops

from composite.compiler import tfr
from composite.compiler.schema import OpSchema

OpDef = Callable[..., Any]
Define = Callable[..., Any]

ACT = (
    'name: "act" type: "string" default_value { s: "" } '
    'allowed_values { list { s: "" s: "RELU" s: "RELU6" s: "TANH" } }'
)
K = 'name: "k" type: "int" default_value { i: 0 }'

HALF = 0.5
PADS = ((0, 0), (1, 1))
TABLE = np.array([[1.0, 2.0]], np.float32)
DTYPE = tf.float64


DENSE = """
def body(input_, filter_, bias, act):
    \"\"\"Dense layer with its activation.

    act(input_ @ filter_ᵀ + bias)
    \"\"\"
    y = tf.raw_ops.MatMul(a=input_, b=filter_, transpose_b=True)
    y = tf.raw_ops.BiasAdd(value=y, bias=bias)
    if act == "RELU":
        return tf.nn.relu(y)
    elif act == "RELU6":
        return tf.raw_ops.Relu6(features=y)
    elif act == "TANH":
        return tf.tanh(y)
    return y
"""


def dense_op_def(op_def: OpDef) -> Any:
    inputs = ["input_: T", "filter_: T", "bias: T"]
    return op_def("FusedFullyConnected", inputs, ["o: T"], [ACT])


def test_a_dense_layer(compile_body: Any, define: Define, op_def: OpDef, golden: Any) -> None:
    compiled = compile_body(define(DENSE), dense_op_def(op_def))
    golden(tfr.print_module(compiled.module), "dense.mlir")
    golden(text_format.MessageToString(compiled.program), "dense.txtpb")


def test_documentation_and_place_are_in_the_program(
    compile_body: Any, define: Define, op_def: OpDef
) -> None:
    function = compile_body(define(DENSE), dense_op_def(op_def)).program.function[0]
    assert function.signature.summary == "Dense layer with its activation."
    assert function.signature.description == "act(input_ @ filter_ᵀ + bias)"
    assert function.attr["_place"].s == b"ops.py:1"
    assert function.attr["_module"].s == b"ops"


SHARED_REST = """
def body(x, k):
    y = x * 2
    if k > 0:
        if k > 10:
            return y
        z = y + 1
    else:
        z = y - 1
    z = tf.tanh(z)
    return z * y
"""


def test_what_follows_several_branches_is_one_function(
    compile_body: Any, define: Define, op_def: OpDef, golden: Any
) -> None:
    compiled = compile_body(define(SHARED_REST), op_def("Test", attrs=[K]))
    golden(compiled.text, "shared_rest.mlir")
    assert compiled.called.count("Tanh") == 1
    assert compiled.kinds.count("tfr.apply") == 2


EXPRESSIONS = """
def body(x, y, k):
    a = (x + y) * 2 - x / 3.0 // y % k
    b = -a ** 2 @ (~k & 1 | k ^ 3 << 2 >> 1)
    c = 0 < k <= 10 and k != 5 or not k
    n, m = x.shape
    d = x if k in (1, 2) or k is None else b
    e = [d, x, y][1]
    s = x.shape.rank + len(x.shape) + x.shape[-1] + n + m
    if x.dtype == tf.float32 and c:
        e += s
    return e
"""


def test_expressions(compile_body: Any, define: Define, op_def: OpDef, golden: Any) -> None:
    body = define(
        EXPRESSIONS.replace("@ (~k & 1 | k ^ 3 << 2 >> 1)", "* (~k & 1 | k ^ 3 << 2 >> 1)")
    )
    compiled = compile_body(body, op_def("Test", ["x: T", "y: T"], attrs=[K]))
    golden(compiled.text, "expressions.mlir")


def test_operands_are_evaluated_from_left_to_right(compile_body: Any, define: Define) -> None:
    compiled = compile_body(
        define("def body(x):\n    return tf.sin(x) + tf.raw_ops.Mul(y=tf.cos(x), x=tf.tan(x))\n")
    )
    assert compiled.called == ["Sin", "Cos", "Tan", "Mul"]


@pytest.mark.parametrize(
    ("expression", "op"),
    [
        ("tf.nn.relu(x)", "Relu"),
        ("tf.raw_ops.Relu(features=x)", "Relu"),
        ("tf.square(x=x)", "Square"),
        ("gen_math_ops.mat_mul(x, x, transpose_b=True)", "MatMul"),
        ("tf.math.log1p(x)", "Log1p"),
        ("tf.raw_ops.LRN(input=x)", "LRN"),
        ("tf.raw_ops.FFT2D(input=x)", "FFT2D"),
        ("tf.raw_ops.Mean(input=x, axis=[0])", "Mean"),
        ("relu(x)", "Relu"),
    ],
)
def test_names_of_one_op(expression: str, op: str, compile_body: Any, define: Define) -> None:
    body = define(
        f"def body(x):\n    return {expression}\n", gen_math_ops=gen_math_ops, relu=tf.nn.relu
    )
    assert compile_body(body).called == [op]


def test_renamed_arguments_get_the_op_s_own_names(compile_body: Any, define: Define) -> None:
    text = "def body(x):\n    return tf.raw_ops.Mean(input=x, axis=[0], keep_dims=True)\n"
    (call,) = tfr.calls(compile_body(define(text)).module)
    keywords = {keyword.value for keyword in call.attributes["keywords"]}
    assert keywords == {"input", "reduction_indices", "keep_dims"}


def test_captured_constants(compile_body: Any, define: Define, golden: Any) -> None:
    body = define(
        """
        def body(x):
            y = tf.raw_ops.Pad(input=x * HALF, paddings=PADS)
            y = tf.raw_ops.Cast(x=y + TABLE, DstT=DTYPE)
            return y * np.pi
        """,
        HALF=HALF,
        PADS=PADS,
        TABLE=TABLE,
        DTYPE=DTYPE,
    )
    golden(compile_body(body).text, "captured_constants.mlir")


def test_closure_constants(compile_body: Any) -> None:
    def make(scale: float) -> Callable[..., Any]:
        def body(x: Any) -> Any:
            return x * scale

        return body

    two, three, again = (compile_body(make(scale)) for scale in (2.0, 3.0, 2.0))
    assert two.digest == again.digest != three.digest


def test_a_function_under_another_name(compile_body: Any, define: Define) -> None:
    compiled = compile_body(define("def body(x):\n    f = tf.nn.relu\n    return f(f(x))\n"))
    assert compiled.called == ["Relu", "Relu"]


def test_outputs_by_name_index_and_unpacking(compile_body: Any, define: Define) -> None:
    compiled = compile_body(
        define(
            """
            def body(x):
                top = tf.raw_ops.TopKV2(input=x, k=2)
                values, indices = top
                s, u, v = tf.raw_ops.Svd(input=x)
                return top.values + values + top[0] + s
            """
        )
    )
    assert compiled.called == ["TopKV2", "Svd"]
    assert "!tfr.any" not in compiled.text


def test_several_outputs(compile_body: Any, define: Define, op_def: OpDef) -> None:
    declared = op_def("Test", ["x: T"], ["a: T", "b: T"], [K])
    text = """
    def body(x, k):
        if k > 0:
            return x, -x
        return tf.raw_ops.Switch(data=x, pred=x)
    """
    compiled = compile_body(define(text), declared)
    assert sorted(compiled.program.function[0].ret) == ["a", "b"]


def test_lists_in_and_out(compile_body: Any, define: Define, op_def: OpDef) -> None:
    declared = op_def("Test", ["xs: N * T"], ["ys: N * T"])
    text = "def body(xs):\n    return [xs[0], xs[len(xs) - 1]]\n"
    compiled = compile_body(define(text), declared)
    assert compiled.kinds[-1] == "tfr.list"


def test_no_outputs(compile_body: Any, define: Define, op_def: OpDef) -> None:
    text = "def body(x):\n    tf.raw_ops.PrintV2(input=x)\n"
    compiled = compile_body(define(text), op_def("Test", outputs=[]))
    assert compiled.program.function[0].signature.is_stateful
    assert compiled.called == ["PrintV2"]


def test_a_path_that_returns_nothing_fails_when_it_is_taken(
    compile_body: Any, define: Define, op_def: OpDef, golden: Any
) -> None:
    text = (
        "def body(x, k):\n    if k == 1:\n        return x\n    elif k == 2:\n        return -x\n"
    )
    compiled = compile_body(define(text), op_def("Test", attrs=[K]))
    golden(compiled.text, "returns_nothing.mlir")
    assert compiled.kinds.count("tfr.raise") == 1


def test_names_of_nodes(compile_body: Any, define: Define) -> None:
    text = "N = 3\n\ndef body(x):\n    return tf.tanh(x, name=f\"tanh_{N}_{'a'!r}\")\n"
    compiled = compile_body(define(text))
    assert compiled.program.function[0].node_def[0].attr["_name"].s == b"tanh_3_'a'"


@dataclasses.dataclass(frozen=True)
class FakeComposite:
    schema: OpSchema
    digest: str = "0123456789abcdef0123456789abcdef"


def test_other_composites(compile_body: Any, define: Define, op_def: OpDef) -> None:
    inner = FakeComposite(OpSchema.from_op_def(dense_op_def(op_def)))
    body = define("def body(x):\n    return dense(x, x, bias=x, act='RELU')\n", dense=inner)
    compiled = compile_body(body, resolve=lambda one: one if one is inner else None)
    (node,) = [n for n in compiled.program.function[0].node_def if n.op == "tfr.call"]
    assert node.attr["op"].s == b"FusedFullyConnected"
    assert node.attr["_composite_program"].s.decode() == inner.digest
    assert list(node.attr["keywords"].list.s) == [b"input_", b"filter_", b"bias", b"act"]


def test_state_of_other_composites_is_inherited(
    compile_body: Any, define: Define, op_def: OpDef
) -> None:
    declared = op_def("Noisy")
    declared.is_stateful = True
    inner = FakeComposite(OpSchema.from_op_def(declared))
    body = define("def body(x):\n    return noisy(x)\n", noisy=inner)
    compiled = compile_body(body, resolve=lambda one: one if one is inner else None)
    assert compiled.program.function[0].signature.is_stateful


def test_a_name_that_a_branch_leaves_alone_keeps_its_value(
    compile_body: Any, define: Define, op_def: OpDef
) -> None:
    text = """
    def body(x, k):
        y = x
        f = tf.sin
        if k:
            y = f(y)
        elif k == 3:
            f = tf.sin
        return f(y)
    """
    compiled = compile_body(define(text), op_def("Test", attrs=[K]))
    assert compiled.called == ["Sin", "Sin"]


def test_assignments(compile_body: Any, define: Define) -> None:
    compiled = compile_body(
        define(
            """
            def body(x):
                a, b = x, -x
                a, b = b, a
                (c, [d, e]) = a, (b, x)
                f = g = c + d
                h: tf.Tensor = e
                later: tf.Tensor
                h += f * g
                pass
                return h
            """
        )
    )
    assert set(compiled.kinds) == {"tfr.unary", "tfr.binary"}


def test_attributes_of_every_type_are_parameters(
    compile_body: Any, define: Define, op_def: OpDef
) -> None:
    attrs = [
        f'name: "a{i}" type: "{t}"' for i, t in enumerate(("shape", "list(int)", "func", "tensor"))
    ]
    text = "def body(x, a0, a1, a2, a3):\n    return x * a0.rank + a1[0] * a3\n"
    compiled = compile_body(define(text), op_def("Test", attrs=attrs))
    for type_ in ("!tfr.dims", "!tfr.sequence", "!tfr.attr", "!tfr.tensor"):
        assert f"{type_} {{tfr.name" in compiled.text
