"""Every function of the library gives what TensorFlow's own gives, bit for bit.

They call the same ops in the same order, so there is nothing to be lenient about.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import composite
from composite.compiler import library
from composite.compiler.library.names import Entry
from composite.compiler.source import CompositeSyntaxError
from tests.compiler.library import (
    test_conversion,
    test_math,
    test_matrices,
    test_tensors,
)
from tests.compiler.library.nn import test_nn

pytestmark = pytest.mark.many_cases

MakeCase = Callable[[str], Any]

FLOATS = ("bfloat16", "float32", "float64")
INTS = ("int32", "uint8")
COMPLEX = ("complex64",)

# Expressions over x, a matrix; y, one of its shape; z, bool. By the dtypes of x and y.
ONE_INPUT = {
    FLOATS: [
        *("tf.sigmoid(x)", "tf.math.sigmoid(x)", "tf.nn.sigmoid(x)", "tf.math.log_sigmoid(x)"),
        *("tf.tanh(x)", "tf.math.tanh(x)", "tf.nn.tanh(x, name='t')"),
        *("tf.nn.softplus(x)", "tf.math.softplus(x)", "tf.nn.relu6(x)", "tf.nn.relu6(features=x)"),
        *("tf.nn.leaky_relu(x)", "tf.nn.leaky_relu(x, alpha=0.3)", "tf.nn.leaky_relu(x, 0.0)"),
        *("tf.nn.gelu(x)", "tf.nn.gelu(x, approximate=True)", "tf.nn.gelu(x, True, name='g')"),
        *("tf.nn.silu(x)", "tf.nn.swish(x, beta=1.5)", "tf.nn.silu(x, x)"),
        *("tf.nn.softmax(x)", "tf.nn.softmax(x, axis=0)", "tf.nn.softmax(x, -1)"),
        *("tf.nn.log_softmax(x)", "tf.nn.log_softmax(x, axis=-2)", "tf.nn.log_softmax(x, axis=1)"),
        *("tf.exp(x)", "tf.math.exp(x=x)", "tf.sqrt(x)", "tf.math.rsqrt(x)", "tf.floor(x)"),
        *("tf.math.ceil(x)", "tf.round(x)", "tf.math.reciprocal_no_nan(x)", "tf.pow(x, 3.0)"),
        *("tf.clip_by_value(x, -1.0, 1.0)", "tf.clip_by_value(x, [0.5], clip_value_max=x)"),
        *("tf.math.reduce_variance(x)", "tf.math.reduce_variance(x, 0, keepdims=True)"),
        *("tf.math.reduce_std(x, axis=[1])", "tf.math.reduce_std(x, axis=-1, keepdims=True)"),
        *("tf.nn.l2_normalize(x, axis=1)", "tf.math.l2_normalize(x)", "tf.cast(x, tf.float64)"),
        "tf.math.l2_normalize(x, dim=0, epsilon=0.5)",
    ],
    (*FLOATS, *INTS): [
        *(
            "tf.reduce_max(x)",
            "tf.reduce_sum(x, axis=[])",
            "tf.reduce_max(x, 0)",
            "tf.reduce_min(x, axis=[0, -1])",
        ),
        *("tf.reduce_min(x, axis=1, keepdims=True)", "tf.fill([2, 3], tf.reduce_max(x))"),
    ],
    (*FLOATS, *INTS, *COMPLEX): [
        *("tf.identity(x)", "tf.stop_gradient(x)", "tf.zeros_like(x)", "tf.ones_like(x)"),
        *("tf.zeros_like(x, dtype=tf.int64)", "tf.ones_like(x, tf.float32)", "tf.shape(x)"),
        *("tf.shape(x, out_type=tf.int64)", "tf.cast(x, x.dtype)", "tf.reshape(x, [-1])"),
        *("tf.cast(x, tf.complex64)", "tf.reshape(tensor=x, shape=(1, -1))", "tf.transpose(x)"),
        *("tf.transpose(x, perm=[1, 0])", "tf.transpose(x, conjugate=True)", "tf.concat([x], 0)"),
        *("tf.expand_dims(x, 0)", "tf.expand_dims(x, axis=-1)", "tf.stack([x, x])"),
        *("tf.concat([x, x], axis=1)", "tf.concat(values=[x, x, x], axis=-2)", "tf.stack([x], 2)"),
        *("tf.slice(x, [0, 1], [-1, 1])", "tf.slice(x, size=[1, 2], begin=[1, 0])"),
        *("tf.squeeze(tf.expand_dims(x, 0))", "tf.squeeze(tf.expand_dims(x, 1), axis=1)"),
        *("tf.squeeze(tf.expand_dims(x, 1), axis=[1])", "tf.stack((x, x), axis=-1)"),
        *("tf.reduce_sum(x)", "tf.reduce_sum(x, axis=0)", "tf.reduce_sum(x, [0, 1], True)"),
        *("tf.math.reduce_sum(x, axis=-1, keepdims=True)", "tf.reduce_mean(x)"),
        *("tf.reduce_mean(x, axis=[1])", "tf.reduce_mean(x, axis=(0, 1), keepdims=True)"),
        *("tf.reduce_prod(x)", "tf.reduce_prod(x, axis=1, keepdims=1)"),
    ],
    INTS: ["tf.nn.leaky_relu(x)", "tf.round(x)", "tf.cast(x, tf.bool)", "tf.cast(x, tf.float32)"],
    ("int32", *FLOATS, "complex64", "complex128"): ["tf.abs(x)", "tf.math.sign(x)"],
    ("complex64", "complex128"): [
        "tf.math.reduce_variance(x, axis=0)",
        "tf.math.reduce_std(x)",
        "tf.sqrt(x)",
    ],
}
TWO_INPUTS = {
    (*FLOATS, "int32", *COMPLEX): [
        *("tf.add(x, y)", "tf.subtract(x, y=y)", "tf.multiply(x, y)", "tf.add(x, 2)"),
        *("tf.equal(x, y)", "tf.not_equal(x, y)", "tf.math.equal(x, x)", "tf.subtract(2, x)"),
        *("tf.where(tf.equal(x, y), x, y)", "tf.where(condition=x != y, x=x, y=y)"),
    ],
    (*FLOATS, *INTS, *COMPLEX): ["tf.divide(x, y)", "tf.truediv(x, y)", "tf.divide(x, 2)"],
    (*FLOATS, *COMPLEX): ["tf.pow(x, y)", "tf.math.divide_no_nan(x, y)"],
    FLOATS: [
        *("tf.math.floordiv(x, y)", "tf.math.multiply_no_nan(x, y)", "tf.where(x > y, x, 0.0)"),
        "tf.math.divide_no_nan(x, 2.0)",
    ],
}
BOOL = [
    *("tf.reduce_any(z)", "tf.reduce_any(z, axis=0)", "tf.reduce_all(z, 1, keepdims=True)"),
    *("tf.math.reduce_all(z)", "tf.math.logical_xor(z, tf.raw_ops.LogicalNot(x=z))", "tf.where(z)"),
    *("tf.math.logical_xor(z, True)", "tf.where(z, 1.0, -1.0)"),
]

# Shapes of the factors of a matrix product, and how they are given.
PRODUCTS = [
    ("tf.matmul(x, y)", [2, 3], [3, 4]),
    ("tf.matmul(a=x, b=y)", [5, 2, 3], [3, 4]),
    ("tf.linalg.matmul(x, y)", [5, 1, 2, 3], [7, 3, 4]),
    ("tf.matmul(x, y, transpose_a=True)", [3, 2], [3, 4]),
    ("tf.matmul(x, y, False, True)", [2, 3], [4, 3]),
    ("tf.matmul(x, y, transpose_a=True, transpose_b=True)", [5, 3, 2], [5, 4, 3]),
    ("tf.matmul(x, y, adjoint_a=True)", [3, 2], [3, 4]),
    ("tf.matmul(x, y, adjoint_b=True)", [5, 2, 3], [4, 3]),
    ("tf.linalg.matvec(x, y)", [2, 3], [3]),
    ("tf.linalg.matvec(x, y, transpose_a=True)", [5, 3, 2], [5, 3]),
]
BIASES = [
    ("tf.nn.bias_add(x, y)", [2, 3], [3]),
    ("tf.nn.bias_add(x, y, data_format='NHWC')", [2, 4, 5, 3], [3]),
    ("tf.nn.bias_add(x, y, data_format='NCW')", [2, 3, 4], [3]),
    ("tf.nn.bias_add(x, bias=y, data_format='NCHW')", [2, 3, 4, 5], [3]),
]


def values(dtype: str, shape: Any, seed: int = 0) -> Any:
    """Numbers around zero, and for floats zero, infinity and NaN."""
    random = np.random.default_rng(seed)
    type_ = tf.as_dtype(dtype)
    if type_.is_bool:
        return random.integers(0, 2, shape).astype(bool)
    if type_.is_integer:
        return random.integers(0 if type_.is_unsigned else -5, 6, shape).astype(dtype)
    made = random.standard_normal(shape)
    if type_.is_complex:
        return (made + 1j * random.standard_normal(shape)).astype(dtype)
    special = np.resize([1.0, 0.0, np.nan, -np.inf, -0.0, np.inf, 3e-310], made.shape)
    chosen = random.random(shape) < 0.15
    return np.where(chosen, special, made).astype(type_.as_numpy_dtype)


def extremes(dtype: str, shape: Any, seed: int = 0) -> Any:
    """Numbers at which functions overflow, saturate or are not smooth."""
    numbers = [0, -0.0, 1, -1, 0.5, 88, -88, 100, -100, 1e-30, 3e38, np.inf, -np.inf, np.nan]
    return np.random.default_rng(seed).choice(numbers, shape).astype(dtype)


def flat(table: dict[tuple[str, ...], list[str]]) -> list[tuple[str, str]]:
    return [(text, dtype) for dtypes, texts in table.items() for text in texts for dtype in dtypes]


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize(("text", "dtype"), flat(ONE_INPUT))
def test_one_input(text: str, dtype: str, case: MakeCase) -> None:
    case(text).check(values(dtype, [3, 4]))


@pytest.mark.parametrize(("text", "dtype"), flat(TWO_INPUTS))
def test_two_inputs(text: str, dtype: str, case: MakeCase) -> None:
    divisor = values(dtype, [3, 4], seed=1)
    if tf.as_dtype(dtype).is_integer:
        divisor = np.where(divisor == 0, 1, divisor).astype(dtype)
    inputs = [values(dtype, [3, 4]), divisor]
    case(text).check(*inputs[: 1 + ("y" in re.findall(r"\w+", text))])


# What TensorFlow cannot differentiate, or differentiates to NaN where ours is right.
NO_GRADIENT = {"tf.nn.silu(x, x)", "tf.nn.swish(x, beta=1.5)"}
SMOOTH = [text for text, dtype in flat(ONE_INPUT) if dtype == "float32"]
SMOOTH += [text for text, dtype in flat(TWO_INPUTS) if dtype == "float32"]


@pytest.mark.parametrize("text", [text for text in SMOOTH if text not in NO_GRADIENT])
def test_gradients_are_those_of_tensorflow_s_functions(text: str, case: MakeCase) -> None:
    made = case(text)
    for draw in (values, extremes):
        inputs = [draw("float32", [3, 4]), draw("float32", [3, 4], seed=1)]
        made.check_gradient(*inputs[: 1 + ("y" in re.findall(r"\w+", text))])


def test_the_gradient_of_silu_is_a_number_where_its_product_overflows(case: MakeCase) -> None:
    x = tf.constant([3e38, -3e38])
    op = case("tf.nn.swish(x, beta=1.5)").op([x], "float32")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 0.0])


@pytest.mark.parametrize("text", BOOL)
def test_bool(text: str, case: MakeCase) -> None:
    case(text.replace("z", "x")).check(values("bool", [3, 4]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize(("text", "left", "right"), PRODUCTS)
def test_products(text: str, left: list[int], right: list[int], dtype: str, case: MakeCase) -> None:
    case(text).check(values(dtype, left), values(dtype, right, seed=1))


@pytest.mark.parametrize(("text", "left", "right"), BIASES)
def test_biases(text: str, left: list[int], right: list[int], case: MakeCase) -> None:
    case(text).check(values("float32", left), values("float32", right, seed=1))


def test_products_of_other_kinds(case: MakeCase) -> None:
    left, right = values("int8", [2, 3]), values("int8", [3, 4], seed=1)
    case("tf.matmul(x, y, output_type=tf.int32)").check(left, right)
    left, right = values("bfloat16", [2, 3]), values("bfloat16", [3, 4], seed=1)
    case("tf.matmul(x, y, a_is_sparse=True)").check(left, right)
    left, right = values("float64", [2, 3]), values("float64", [3, 4], seed=1)
    case("tf.matmul(x, y, b_is_sparse=True)").check(left, right)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(shape=st.lists(st.integers(0, 4), max_size=4), keepdims=st.booleans(), data=st.data())
def test_reductions_of_any_shape(
    shape: list[int], keepdims: bool, data: st.DataObject, case: MakeCase
) -> None:
    name = data.draw(st.sampled_from(["reduce_sum", "reduce_mean", "reduce_max", "reduce_prod"]))
    axes = st.sets(st.integers(0, len(shape) - 1), min_size=1) if shape else st.nothing()
    axis = data.draw(st.one_of(st.none(), axes.map(sorted)))
    case(f"tf.{name}(x, axis={axis}, keepdims={keepdims})").check(values("float32", shape))


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=st.tuples(
        st.lists(st.integers(1, 3), max_size=2), st.lists(st.just(1), max_size=2)
    ).flatmap(st.permutations),
    inner=st.integers(0, 3),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_products_of_any_shape(
    batches: list[list[int]], inner: int, flags: tuple[bool, bool], case: MakeCase
) -> None:
    left = [*batches[0], *((inner, 2) if flags[0] else (2, inner))]
    right = [*batches[1], *((4, inner) if flags[1] else (inner, 4))]
    text = f"tf.matmul(x, y, transpose_a={flags[0]}, transpose_b={flags[1]})"
    case(text).check(values("float32", left), values("float32", right, seed=1))


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(shape=st.lists(st.integers(1, 3), min_size=1, max_size=4), data=st.data())
def test_softmax_over_any_axis(shape: list[int], data: st.DataObject, case: MakeCase) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    case(f"tf.nn.softmax(x, axis={axis})").check(values("float32", shape))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tf.matmul(x, y, transpose_a=True, adjoint_a=True)", "only one of transpose_a and adj"),
        ("tf.nn.gelu(tf.cast(x, tf.int32))", "takes floating point numbers, not int32"),
        ("tf.nn.softmax(x, axis=2)", "the axis 2 is not in the range"),
        ("tf.where(x > 0, x)", "both x and y, or neither"),
        ("tf.nn.bias_add(x, x[0], data_format='CN')", "data_format is"),
        ("tf.zeros_like(x, layout=1)", "`layout` is not supported"),
        ("tf.nn.l2_normalize(x, axis=0, dim=1)", "the old name of `axis`"),
    ],
)
def test_errors_come_with_the_author_s_place(text: str, message: str, case: MakeCase) -> None:
    if "[0" in text:
        text = text.replace("x[0]", "y")
    made = case(text)
    inputs = [tf.ones([3, 3])] * (1 + ("y" in re.findall(r"\w+", text)))
    op = made.op(inputs, "float32")
    with (
        composite.options(backend="tf"),
        pytest.raises(tf.errors.InvalidArgumentError, match=message) as caught,
    ):
        op(*inputs)
    assert re.search(rf"\b{made.path.name}:2:\d+", str(caught.value))


@pytest.mark.parametrize("entry", library.entries(), ids=lambda entry: entry.names[0])
def test_signatures_are_tensorflow_s(entry: Entry) -> None:
    ours = plain(entry.function)
    for name, theirs in zip(entry.names, entry.objects(), strict=True):
        if entry.rest:
            kinds = [one.kind for one in inspect.signature(theirs).parameters.values()]
            assert kinds[-2:] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]
            assert [one[0] for one in ours].index(entry.rest) == len(kinds) - 2
        else:
            assert plain(theirs) == ours, name
        assert library.find(theirs) is entry


def plain(function: Any) -> list[tuple[str, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in parameters]


def test_every_function_has_a_case() -> None:
    texts = " ".join(
        [text for text, _ in (*flat(ONE_INPUT), *flat(TWO_INPUTS))]
        + [text for text, *_ in (*PRODUCTS, *BIASES)]
        + BOOL
        + [
            case[0]
            for module in (test_conversion, test_math, test_matrices, test_nn, test_tensors)
            for case in module.CASES
        ]
    )
    missing = [
        entry.names[0]
        for entry in library.entries()
        if entry.names[0] != "tf.debugging.Assert"  # gives nothing: the test below
        if not entry.names[0].startswith("tf.TensorArray")  # no tensors: test_arrays.py
        if not any(f"{name}(" in texts for name in entry.names)
    ]
    assert missing == []


def test_names_are_found_however_they_are_imported(case: MakeCase) -> None:
    from tensorflow.python.ops import math_ops, nn_ops

    for theirs, ours in ((math_ops.matmul, tf.linalg.matmul), (nn_ops.relu6, tf.nn.relu6)):
        assert library.find(theirs) is library.find(ours) is not None
    assert library.find(tf.nn.relu) is None
    assert library.find(3) is None


def test_the_names_that_documentation_lists() -> None:
    names = library.names()
    assert names == sorted(set(names))
    assert {"tf.matmul", "tf.linalg.matmul", "tf.einsum", "tf.nn.conv2d"} <= set(names)
    assert len(names) == sum(len(entry.names) for entry in library.entries())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tf.einsum('ij,jk,kl->il', x, x, x)", "two tensors at most"),
        ("tf.einsum('ij,jk', x, x)", "write what is left"),
        ("tf.meshgrid(x, indexing='yx')[0]", "indexing is 'xy' or 'ij', not yx"),
        ("tf.pad(x, [[1, 1], [1, 1]], mode='WRAP')", "mode is CONSTANT, REFLECT or SYMMETRIC"),
        ("tf.sort(x, direction='UP')", "ASCENDING or DESCENDING, not UP"),
        ("tf.norm(x, ord=2, axis=[0, 1])", "the order of a norm of matrices cannot be 2"),
        ("tf.nn.conv2d(x, x, [1, 2, 3], 'SAME')", "give 1, 2 or 4 numbers"),
        ("tf.complex(x, tf.cast(x, tf.float64))", "two tensors of float32 or two of float64"),
        ("tf.nn.experimental.stateless_dropout(x, 1.5, [1, 2])", "at least 0 and below 1"),
    ],
)
def test_wrong_arguments_are_told_where_the_call_stands(
    text: str, message: str, case: MakeCase
) -> None:
    made = case(text)
    with (
        composite.options(backend="tf"),
        pytest.raises(
            (CompositeSyntaxError, tf.errors.InvalidArgumentError), match=message
        ) as told,
    ):
        made.op([tf.ones([3, 3])], "float32")(tf.ones([3, 3]))
    assert made.path.name in str(told.value)


def test_assertions_end_the_step(define: Any) -> None:
    body = define("""
        import tensorflow as tf

        def body(x):
            tf.debugging.Assert(tf.reduce_all(x > 0.0), ["not above zero:", x])
            tf.Assert(tf.reduce_all(x < 9.0), data=[x], summarize=1)
            return tf.debugging.assert_all_finite(x, "lost")
    """)
    op = composite.Composite("LibraryAsserts", inputs=["x: float"], outputs=["y: float"])(body)
    assert op.op_def.is_stateful
    for call in (op, tf.function(op.__call__)):
        np.testing.assert_array_equal(call(tf.constant([1.0, 2.0])), [1.0, 2.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"not above zero:.*-1"):
            call(tf.constant([1.0, -1.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"10"):
            call(tf.constant([10.0, 1.0]))
