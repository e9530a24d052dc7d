"""Every error of the front end, as the user sees it: text, line, caret, cause, what to write."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler import source as source_module
from composite.compiler.source import CompositeSyntaxError

OpDef = Callable[..., Any]
Define = Callable[..., Any]

K = 'name: "k" type: "int" default_value { i: 0 }'

# Bodies of `def body(x, y, k)` (k is an int attribute), by the golden file that they belong to.
BODIES = {
    "objects": [
        "VARIABLE.assign(x)\nreturn x",
        "return VARIABLE.value() + VARIABLE.scatter_nd_add(x, y)",
        "x.assign_add(y)\nreturn x",
        "return x.read_value()",
        "return tf.TensorArray(tf.float32, 2)",
        "return tf.TensorArray(tf.float32, 2) + x",
        "a = tf.TensorArray(tf.float32, 2)\nreturn x * a.write(0, x)",
        "a = tf.TensorArray(tf.float32, 2)\na.write(0, x)\nreturn a.stack()",
        "a = tf.TensorArray(tf.float32, 2)\nreturn a.concat()",
        "a = tf.TensorArray(tf.float32, 2)\nreturn a.read()",
        "a = tf.TensorArray(tf.float32, 2)\nreturn x * len(a)",
        "a = tf.TensorArray(tf.float32, 2)\nb = [a, a]\nreturn b[0].stack()",
        "a = tf.TensorArray(tf.float32, 2)\nfor i in range(k):\n    a = a.stack()\nreturn x",
        "if k:\n    a = x\nelse:\n    a = tf.TensorArray(tf.float32, 2)\nreturn a.stack()",
        "write = tf.TensorArray(tf.float32, 2).write\nreturn x + write",
        "a = tf.TensorArray(tf.float32, handle=x)\nb = a.write(0, q)\nreturn b.stack()",
        "return tf.TensorArray.read(x, 0)",
    ],
    "statements": [
        "for i in range(3):\n    z = x + i\nreturn z",
        "for i in reversed(x):\n    x = x + i\nreturn x",
        "for i in range(1, 2, 3, 4):\n    pass\nreturn x",
        "for i in zip(x, y, strict=True):\n    pass\nreturn x",
        "f = tf.nn.relu\nfor i in range(k):\n    x, f = f(x), tf.nn.elu\nreturn x",
        "try:\n    return x\nexcept ValueError:\n    return y",
        "with tf.name_scope('a'):\n    return x",
        "raise x",
        "raise ValueError('no') from None",
        "if k:\n    raise\nreturn x",
        "if k:\n    raise ValueError(x)\nreturn x",
        "if k:\n    raise ValueError('a', 'b')\nreturn x",
        "if k:\n    raise ValueError(f'{x:d}')\nreturn x",
        "del x\nreturn y",
        "global Z\nreturn x",
        "import os\nreturn x",
        "@tf.function\ndef inner(z):\n    return z\nreturn inner(x)",
        "def inner(*z):\n    return z[0]\nreturn inner(x)",
        "def inner(z):\n    with z:\n        pass\n    return z\nreturn x",
        "def inner(z):\n    return z + w\nw = y\nreturn inner(x)",
        "w = y\ndef inner(z):\n    return z + w\nw = x\nreturn inner(x)",
        "if k:\n    def f(z): return -z\nelse:\n    def f(z): return z\nreturn f(x)",
        "class C:\n    pass\nreturn x",
        "match k:\n    case 1:\n        return x\nreturn y",
        "x[0] = y\nreturn x",
        "x.shape = y\nreturn x",
        "a, b = x\nreturn a",
        "a, b = k\nreturn a",
        "values, indices, more = tf.raw_ops.TopKV2(input=x, k=2)\nreturn values",
        "a = [x]\na += [y]\nreturn a[0]",
    ],
    "expressions": [
        "return lambda z: z",
        "return (lambda z, *w: z)(x)",
        "return [z for z in (x, y) if z > 0][0]",
        "return {'a': x}['a']",
        "return {x}",
        "return x[[0, 1]]",
        "return x[..., 0, ...]",
        "return x[()]",
        "return (x, y)[0:1, 0]",
        "return (x, y)[0:1]",
        "return (x, y)[x]",
        "return (z := x)",
        "return x @ k",
        "if x in (x, y):\n    return x\nreturn y",
        "if k is 3:\n    return x\nreturn y",
        "return x * b'a'",
        "return x * 2j",
        "return x * 9223372036854775808",
        "return x * len(f'{x}')",
        "return x * len('%d' % x)",
        "s = '%d'\ns %= k\nreturn x * len(s)",
        "return x.T",
        "return x * x.shape.as_list(1)",
        "return tf.raw_ops.TopKV2(input=x, k=2).as_list()",
        "return x * k.bit_length",
        "return (x, y).count",
        "return tf.raw_ops.TopKV2(input=x, k=2).value",
    ],
    "names": [
        "return z",
        "return x + late",
        "z = z + 1\nreturn z",
        "if k:\n    z = x\nreturn z",
        "if k:\n    z = x\nelif k > 2:\n    z = y\nreturn z",
        "if k:\n    z = x\n    if k > 2:\n        return z\nelse:\n    w = x\nreturn z",
        "return body(x, y)",
        "return x * LIST",
        "return x * TENSOR",
        "return x * OBJECT",
        "return x * tf.nn.relu",
        "return tf.nn.relo(x)",
        "if k:\n    f = tf.sin\nelse:\n    f = tf.cos\nreturn f(x)",
        "return x * OBJECT.field",
    ],
    "calls": [
        "return x(y)",
        "return OBJECT(x)",
        "return np.mean(x)",
        "return tf.map_fn(x, y)",
        "return tf.math.bincount(x)",
        "return helper()",
        "return helper(x, y, x)",
        "return helper(x, x=y)",
        "return helper(x, z=y)",
        "return no_text(x)",
        "return isinstance(k, complex) * x",
        "return tf.matmul(x)",
        "return tf.matmul(x, y, transpose_a=x)",
        "return tf.concat(x, 0)",
        "return tf.constant(x)",
        "return tf.nn.fractional_avg_pool(x, y)",
        "return print(x)",
        "return max(x, y)",
        "return 3(x)",
        "return tf.raw_ops.Relu(x)",
        "return tf.raw_ops.Relu(feature=x)",
        "return tf.raw_ops.Relu()",
        "return tf.raw_ops.MatMul(a=x)",
        "return tf.raw_ops.MatMul(a=x, b=y, T=tf.float32)",
        "return tf.nn.relu(x, 'a', y)",
        "return tf.nn.relu(x, features=y)",
        "return tf.raw_ops.Relu(*[x])",
        "return tf.raw_ops.Relu(**{})",
        "return tf.raw_ops.Relu(features=x, name=k)",
        "return tf.raw_ops.Relu(features=None)",
        "return tf.raw_ops.MatMul(a=x, b=y, transpose_a=x)",
        "return tf.raw_ops.MatMul(a=x, b=y, transpose_a=1)",
        "return tf.raw_ops.MaxPool(input=x, ksize=[1], strides=[1], padding='same')",
        "return tf.raw_ops.Cast(x=x, DstT='float32')",
        "return tf.raw_ops.Cast(x=x, DstT=None)",
        "return tf.raw_ops.Concat(concat_dim=0, values=[x, y], N=2)",
        "return tf.raw_ops.Softmax(logits=x, axis=1)",
        "return tf.raw_ops.LRN(input=x, depth_radius='a')",
        "return tf.raw_ops.TopKV2(input=x, k=2, sorted=0)[0]",
        "return tf.raw_ops.Unpack(value=x, num=-1)[0]",
        "return len(x) * x",
        "return len(x, y)",
        "return x + tf.raw_ops.RandomUniform(shape=x.shape, dtype=tf.float32)",
        "return tf.raw_ops.RandomStandardNormal(shape=x.shape, dtype=tf.float32)",
        "return x * tf.random.uniform(x.shape)",
        "return tf.nn.dropout(x, 0.5)",
        "return dense(x, act='')",
        "return dense(x, y, 'RELU')",
        "return dense(x, y, act='SELU')",
        "return dense(x, y, activation='RELU')",
    ],
    "returns": [
        "x + y",
        "pass",
        "return",
        "return None",
        "return [x, y]",
        "return x.shape",
        "if k:\n    return\nreturn x",
    ],
}


class WithField:
    field = 1


def declared_dense(op_def: OpDef) -> Any:
    act = (
        'name: "act" type: "string" default_value { s: "" } '
        'allowed_values { list { s: "" s: "RELU" } }'
    )
    return op_def("Dense", ["input_: T", "filter_: T"], ["o: T"], [act])


@pytest.fixture
def refused(compile_body: Any, define: Define, op_def: OpDef) -> Callable[[str], str]:
    """Compile a body that is refused; returns what the user sees."""
    import tensorflow as tf

    from composite.compiler.schema import OpSchema

    class Dense:
        schema = OpSchema.from_op_def(declared_dense(op_def))
        digest = "00"

    namespace: dict[str, Any] = {}
    exec("def no_text(x):\n    return x\n", namespace)

    def helper(x: Any) -> Any:
        return x

    def refused_(body: str) -> str:
        text = "def body(x, y, k):\n" + "".join(f"    {line}\n" for line in body.splitlines())
        function = define(
            text,
            dense=Dense,
            helper=helper,
            no_text=namespace["no_text"],
            LIST=[1, 2],
            TENSOR=tf.constant(1.0),
            OBJECT=WithField(),
            VARIABLE=tf.Variable(1.0),
        )
        with pytest.raises(CompositeSyntaxError) as caught:
            compile_body(
                function,
                op_def("Test", ["x: T", "y: T"], ["o: T"], [K]),
                resolve=lambda one: one if one is Dense else None,
            )
        shown = "".join(traceback.format_exception_only(caught.value))
        name = f"{source_module.__name__}.CompositeSyntaxError"
        return shown.replace(str(caught.value.filename), "ops.py").replace(name, "error")

    return refused_


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("subject", BODIES)
def test_errors(subject: str, refused: Callable[[str], str], golden: Any) -> None:
    golden("\n".join(refused(body) for body in BODIES[subject]), f"errors_{subject}.txt")


@pytest.mark.parametrize(
    ("result", "count"),
    [
        ("x, x, x", "3 values"),
        ("x", "1 value"),
        ("x * 2", "1 value"),
        ("(lambda z: z)(x)", "1 value"),
        ("tf.raw_ops.TopKV2(input=x, k=2).values", "1 value"),
        ("tf.raw_ops.SelfAdjointEig(input=x)", "1 value"),
        ("tf.raw_ops.FusedBatchNorm(x=x, scale=x, offset=x, mean=x, variance=x)", "5 values"),
    ],
)
def test_a_wrong_number_of_outputs(
    compile_body: Any, define: Define, op_def: OpDef, result: str, count: str
) -> None:
    declared = op_def("Test", ["x: T"], ["a: T", "b: T"])
    with pytest.raises(
        CompositeSyntaxError, match=rf"returns {count}, and Test has 2 outputs: a, b \[C030\]"
    ):
        compile_body(define(f"def body(x):\n    return {result}\n"), declared)


def test_a_closure_variable_that_comes_later(compile_body: Any) -> None:
    def make() -> Any:
        def body(x: Any) -> Any:
            return x * scale

        with pytest.raises(CompositeSyntaxError, match="`scale` is not defined"):
            compile_body(body)
        scale = 2.0

    make()


def test_the_caret_is_in_the_user_s_file(compile_body: Any, define: Define) -> None:
    body = define("\n\ndef body(x):\n    y = x\n    return y.T\n")
    with pytest.raises(CompositeSyntaxError) as caught:
        compile_body(body)
    error = caught.value
    assert error.filename == body.__code__.co_filename
    assert (error.lineno, error.offset, error.end_offset) == (3, 12, 15)
    assert error.text == "    return y.T\n"
