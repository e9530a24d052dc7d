"""Python that TensorFlow's own composite language (`tfr`, removed in 2.18) could not or did wrong.

Each body means here what its Python function does, in the eager op, in a traced function of known
shapes and in one of unknown shapes; or it is refused by name. Nothing is dropped or guessed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.compiler.source import CompositeSyntaxError

pytestmark = pytest.mark.many_cases

HEAD = """
import tensorflow as tf
from tensorflow.python.ops import gen_math_ops, gen_nn_ops

FACTOR = 3


def helper(z, by=2):
    return z * by


def body(xs, x, k, act, ks):
    '''Do it.'''
"""

# Bodies of `def body(xs, x, k, act, ks)`: xs a list of tensors, x a tensor of shape [4, 3], k an
# int, act a string, ks a list of ints.
ACCEPTED = {
    "return_without_else": "if k > 0:\n    return x\nreturn -x",
    "assignment_without_else": "if k > 0:\n    x = x + 1\nreturn x",
    "literals_as_tensors": "return x + 1 * x + 2.5",
    "small_literal": "return x * 1e-05",
    "attribute_as_tensor": "return tf.raw_ops.AddV2(x=x, y=k)",
    "list_as_tensor": "return tf.raw_ops.Reshape(tensor=x, shape=[3, 4])[0, 0] + x",
    "list_where_one_tensor_is_wanted": "return tf.raw_ops.Sum(input=xs, axis=0)",
    "list_attribute": "return x * ks[0] + len(ks) - ks[-1]",
    "renamed_arguments": "return x - tf.raw_ops.Mean(input=x, axis=0, keep_dims=True)",
    "split": "a, b, c = tf.raw_ops.Split(axis=1, value=x, num_split=3)\nreturn x + a * b - c",
    "split_v": "a, b = tf.raw_ops.SplitV(value=x, size_splits=[1, 2], axis=1, num_split=2)\n"
    "return x + a + tf.raw_ops.Sum(input=b, axis=1, keep_dims=True)",
    "generated_modules": "return gen_nn_ops.relu(gen_math_ops.mul(x, x))",
    "public_names": "return tf.math.tanh(tf.nn.relu(x))",
    "while": "while k > 0:\n    x = x + k\n    k -= 1\nreturn x",
    "break_and_continue": "for i in range(9):\n    if i == 1:\n        continue\n"
    "    if i > k:\n        break\n    x = x + i\nreturn x",
    "ternary": "return x if k > 1 else -x",
    "f_string": "return tf.nn.relu(x, name=f'a_{FACTOR}')",
    "item_of_a_tensor": "return x + x[0] - x[-1, 2]",
    "and_or_not": "if (k > 0 and act == 'b') or not ks:\n    return x\nreturn -x",
    "and_or_values": "return x * (k and 5) + (k or 7)",
    "in": "if act in ('', 'b') and k not in ks:\n    return x\nreturn -x",
    "is_none": "if x is None or k is None:\n    return -x\nreturn x",
    "operators_on_tensors": "return (x + x) * x - x / (x * x + 1) + x // 2 + x % 3 + x**2",
    "floor": "return x + k // 2 + k % 3 + -k // 2 + -k % 3 + k**2",
    "division": "return x + k / 2",
    "shape_arithmetic": "return x * (x.shape[0] + 1) + x.shape[-1] // 2",
    "dim_in_a_list": "return tf.reshape(x, [x.shape[1], x.shape[0]])[0, 0] + x",
    "global_constant": "return x * FACTOR",
    "helper": "return helper(x) + helper(x, by=k)",
    "chained_assignment": "a = b = x + 1\nreturn a * b",
    "annotated": "a: int = 3\nreturn x * a",
    "comprehension": "return tf.raw_ops.AddN(inputs=[y * i for i, y in enumerate(xs)]) + x",
    "lambda": "f = lambda y: y * k\nreturn f(x)",
    "nested_def": "def f(y):\n    return y * x\nreturn f(x + 1)",
    "starred_target": "a, *b = [1, 2, 3]\nreturn x * a + len(b) + b[-1]",
    "reversed": "for i in reversed([1, 2, 3]):\n    x = x * 2 + i\nreturn x",
    "literal_list": "for i in [1, 2, 3]:\n    x = x + i\nreturn x",
    "enumerate": "for i, y in enumerate(xs):\n    x = x + i * y\nreturn x",
    "raise": "if k > 100:\n    raise ValueError(f'{k}')\nreturn x",
    "tuple_attribute": "return x + tf.raw_ops.Sum(\n"
    "    input=tf.raw_ops.MaxPool(input=x[None, :, :, None], ksize=(1, 2, 2, 1),\n"
    "                             strides=(1, 2, 2, 1), padding='VALID'), axis=[0, 1, 2, 3])",
    "chained_comparison": "if 1 < k < 4:\n    return x\nreturn -x",
    "unequal_strings": "if act != 'b':\n    return x\nreturn -x",
    "signed_comparison": "if k > 0:\n    return x\nreturn -x",
    "unequal_types": "if x.dtype != tf.float32:\n    return x\nreturn -x",
    "branches_choose_an_int": "if k > 0:\n    n = 3\nelse:\n    n = -4\nreturn x * n",
    "loop_variable_after_the_loop": "i = 7\nfor i in range(k):\n    pass\nreturn x * i",
    "cast_to_double": "return tf.cast(tf.cast(x, tf.float32), tf.float64) * 2",
    "sum_of_range": "n = 0\nfor i in range(4):\n    n = n + i\nreturn x * n",
    "range_with_a_step": "n = 0\nfor i in range(0, 5, 2):\n    n = n + 1\nreturn x * n",
    "no_trips": "for i in range(3, 3):\n    x = x * 0\nreturn x",
    "add_n": "if len(xs) == 1:\n    return xs[0]\nsum_ = xs[0]\nfor i in range(1, len(xs)):\n"
    "    sum_ = tf.raw_ops.AddV2(x=sum_, y=xs[i])\nreturn sum_ + x",
    "shape_of_any_rank": "n = 1\nfor dim in x.shape:\n    n = n * dim\nreturn x * n",
    "rank": "return x * x.shape.rank + len(x.shape)",
    "acronyms": "y = tf.raw_ops.LRN(input=tf.cast(x, tf.float32)[None, None])[0, 0]\n"
    "return x + tf.cast(y, tf.float64)",
    "fft": "y = tf.raw_ops.FFT(input=tf.cast(x, tf.complex128))\n"
    "return x + tf.raw_ops.Real(input=y, Tout=tf.float64)",
}

Make = Callable[[str], Any]

_numbers = itertools.count()


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make_(lines: str) -> Any:
        number = next(_numbers)
        text = HEAD + "".join(f"    {line}\n" for line in lines.split("\n"))
        path = tmp_path / f"constructs_{number}.py"
        path.write_text(text, encoding="utf-8")
        namespace: dict[str, Any] = {"__name__": path.stem}
        exec(compile(text, str(path), "exec"), namespace)
        decorate = composite.Composite(
            f"Construct{number}",
            inputs=["xs: N * T", "x: T"],
            attrs=["k: int", "act: string", "ks: list(int)"],
            derived_attrs=["N: int >= 1", "T: {float, double}"],
            outputs=["o: T"],
        )
        return decorate(namespace["body"])

    return make_


def check(op: Any, xs: list[Any], x: Any, **attributes: Any) -> None:
    """Compare eager, traced with known shapes and traced with unknown ones, with Python."""

    def call(xs: Any, x: Any) -> Any:
        return op(xs, x, **attributes)

    unknown = tf.TensorSpec(None, tf.float64)
    traced = tf.function(call, input_signature=[[unknown] * len(xs), unknown])
    want = op.python_function(xs, x, **attributes)
    with composite.options(backend="tf"):
        for one in (call, tf.function(call), traced):
            np.testing.assert_allclose(one(xs, x), want, rtol=1e-6)


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_construct_means_what_python_means(make: Make, name: str) -> None:
    op = make(ACCEPTED[name])
    random = np.random.default_rng(len(name))
    x, *xs = (tf.constant(random.standard_normal([4, 3]), tf.float64) for _ in range(5))
    check(op, xs[:1], x, k=-1, act="a", ks=[5])
    check(op, xs[:4], x, k=2, act="b", ks=[2, 3])
    check(op, xs[:3], x, k=0, act="", ks=[1, -2])


# What is refused, with its entry in docs/errors.md.
REFUSED = {
    "dict": ("return {0: x}[0]", "C050"),
    "with": ("with tf.name_scope('a'):\n    return x", "C020"),
    "try": ("try:\n    return x\nexcept ValueError:\n    return -x", "C020"),
    "starred": ("return tf.maximum(*[x, x])", "C028"),
    "max": ("return x * max(k, x)", "C078"),
    "print": ("print(x)\nreturn x", "C071"),
    "type_of_an_attribute": ("return tf.raw_ops.Cast(x=x, DstT='float32')", "C075"),
    "unknown_argument": ("return tf.raw_ops.Relu(x=x)", "C072"),
    "unknown_op": ("return tf.raw_ops.Relo(features=x)", "C044"),
    "is_a_number": ("if k is 3:\n    return x\nreturn -x", "C053"),
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_a_construct_is_refused_by_name(make: Make, name: str) -> None:
    lines, code = REFUSED[name]
    with pytest.raises(CompositeSyntaxError, match=rf"\[{code}\]"):
        make(lines)


def mirror_pad(x: Any, paddings: list[int], symmetric: bool) -> Any:
    edge = 0 if symmetric else 1
    for axis in range(x.shape.rank):
        size = x.shape[axis]
        picked = [left - 1 + edge for left in range(paddings[2 * axis], 0, -1)]
        picked = picked + [i for i in range(size)]  # noqa: C416
        picked = picked + [size - 1 - edge - i for i in range(paddings[2 * axis + 1])]
        x = tf.raw_ops.GatherV2(params=x, indices=picked, axis=axis)
    return x


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("shape", [[4], [3, 4], [3, 4, 5], [2, 3, 2, 4]], ids=len)
def test_mirror_pad_of_any_rank(mode: str, shape: list[int]) -> None:
    op = composite.Composite(
        "ConstructMirrorPad",
        ["x: T"],
        ["paddings: list(int)", "symmetric: bool"],
        ["T: {int32, float}"],
        ["y: T"],
    )(mirror_pad)
    x = tf.reshape(tf.range(tf.reduce_prod(shape)), shape)
    for left, right in ((1, 1), (0, 1), (1, 0)):
        paddings = [[left, right]] * len(shape)
        flat = [left, right] * len(shape)
        with composite.options(backend="tf"):
            got = op(x, paddings=flat, symmetric=mode == "SYMMETRIC")
        np.testing.assert_array_equal(got, tf.pad(x, paddings, mode))


def test_an_attribute_of_a_node_that_nobody_knows_is_kept(make: Make) -> None:
    op = make("for i in range(k):\n    x = x + i\nreturn x")

    @tf.function
    def traced(x: Any) -> Any:
        label = tf.compat.v1.AttrValue(s=b"kept")
        with tf.compat.v1.get_default_graph()._attr_scope({"_my_attr": label}):
            return op([x], x, k=3, act="", ks=[])

    x = tf.zeros([2])
    with composite.options(backend="tf"):
        np.testing.assert_array_equal(traced(x), [3.0, 3.0])
    nodes = traced.get_concrete_function(x).graph.as_graph_def().node
    (node,) = [node for node in nodes if node.op == op.op_name]
    assert node.attr["_my_attr"].s == b"kept"


def test_a_type_that_an_op_of_the_body_does_not_take() -> None:
    def body(x: Any, y: Any) -> Any:
        return tf.raw_ops.MatMul(a=x, b=y)

    op = composite.Composite(
        "ConstructMatMul", ["x: T", "y: T"], derived_attrs=["T: {int8, float}"], outputs=["z: T"]
    )(body)
    x = tf.zeros([2, 2], tf.int8)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"test_constructs\.py:\d+:\d+: MatMul: .*int8"
    ):
        op(x, x)


def test_every_raw_op_can_be_named() -> None:
    from composite.compiler.frontend import tf_ops

    names = [name for name in dir(tf.raw_ops) if not name.startswith("_")]
    found = [tf_ops.find(getattr(tf.raw_ops, name)) for name in names]
    assert [op.name for op in found if op is not None] == names
