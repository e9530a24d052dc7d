"""What the front end takes from TensorFlow 2.21, held against the installed version."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import gen_nn_ops
from tensorflow.python.util import tf_decorator, tf_export

from composite.binding import tensorflow_version
from composite.compiler import library
from composite.compiler.frontend import tf_ops
from composite.compiler.schema import OpSchema

RAW_OPS = [name for name in dir(tf.raw_ops) if not name.startswith("_")]


def schema_of(name: str) -> OpSchema:
    return OpSchema.from_op_def(op_def_registry.get(name))


def described(name: str) -> tf_ops.TfOp:
    op = tf_ops.find(getattr(tf.raw_ops, name))
    assert op is not None, name
    return op


def test_every_raw_op_is_found_by_its_own_name() -> None:
    for name in RAW_OPS:
        op = described(name)
        assert op.name == name
        assert op.keyword_only
        assert {one.op_name for one in op.parameters} == set(op.schema.parameters)


def test_generated_functions_and_their_public_names() -> None:
    for function in (gen_nn_ops.relu, tf.nn.relu):
        op = tf_ops.find(function)
        assert op is not None
        assert (op.name, op.keyword_only) == ("Relu", False)


def exported() -> Iterator[tuple[str, Any]]:
    """Every public name that TensorFlow gives to a function it generated, and what it stands for.

    From its own registry, tf_export. Some names are of modules that are not part of `tf`.
    """
    for module in [one for name, one in sys.modules.items() if ".gen_" in name]:
        for function in vars(module).values():
            if isinstance(function, types.FunctionType):
                for name in tf_export.get_v2_names(function):
                    with contextlib.suppress(AttributeError):
                        yield name, functools.reduce(getattr, name.split("."), tf)


def test_every_public_name_of_a_generated_function_is_its_op() -> None:
    assert tf.__version__.startswith(tensorflow_version.MINORS)
    names = dict(exported())
    for name, function in names.items():
        op = tf_ops.find(function)
        assert op is not None, name
        assert not op.keyword_only
    assert len(names) > 150
    assert {"nn.relu", "linalg.cholesky", "strings.lower", "bitwise.invert"} <= set(names)


def test_generated_functions_of_other_libraries() -> None:
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    op = tf_ops.find(gen_xla_ops.xla_sharding)
    assert op is not None
    assert (op.name, op.keyword_only) == ("XlaSharding", False)
    op = tf_ops.find(gen_xla_ops.XlaSharding)
    assert op is not None
    assert op.keyword_only


@pytest.mark.parametrize("function", [tf.matmul, tf.nn.softmax, tf.reduce_sum, len, 3, None, tf])
def test_what_is_not_one_op(function: object) -> None:
    assert tf_ops.find(function) is None


def generated_sources() -> Iterator[tuple[str, dict[str, str]]]:
    """How each generated function hands its parameters to the op: from TensorFlow's own text."""
    modules: dict[str, dict[str, ast.FunctionDef]] = {}
    for name in RAW_OPS:
        function = tf_decorator.unwrap(getattr(tf.raw_ops, name))[1]
        if function.__module__ not in modules:
            tree = ast.parse(inspect.getsource(sys.modules[function.__module__]))
            modules[function.__module__] = {
                one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)
            }
        for node in ast.walk(modules[function.__module__][function.__name__]):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_apply_op_helper"):
                yield (
                    name,
                    {
                        ast.unparse(keyword.value): str(keyword.arg)
                        for keyword in node.keywords
                        if keyword.arg != "name"
                    },
                )


@pytest.mark.slow
def test_renamed_parameters_are_matched_as_tensorflow_hands_them_on() -> None:
    renamed = 0
    for name, handed_on in generated_sources():
        ours = {one.name: one.op_name for one in described(name).parameters}
        assert ours == handed_on, name
        renamed += any(python != op for python, op in ours.items())
    assert renamed > 5


def test_defaults_of_wrappers_are_the_op_s_but_for_two() -> None:
    different = [
        (name, one.name, one.default)
        for name in RAW_OPS
        for one in described(name).parameters
        if one.differs
    ]
    assert different == [
        ("SdcaOptimizer", "adaptative", True),
        ("SdcaOptimizerV2", "adaptive", True),
    ]


def test_no_random_op_is_overlooked() -> None:
    from tensorflow.python.ops import gen_random_ops, gen_stateful_random_ops

    for module in (gen_random_ops, gen_stateful_random_ops):
        for name in vars(module):
            if name not in RAW_OPS or not schema_of(name).is_stateful:
                continue
            if name in ("RngSkip", "RngReadAndSkip"):  # they move a generator on, and draw nothing
                continue
            assert tf_ops.random_advice(schema_of(name)) is not None, name


RANDOM = [
    *[f"tf.random.{name}" for name in ("normal", "uniform", "truncated_normal", "categorical")],
    *[f"tf.random.{name}" for name in ("gamma", "poisson", "shuffle", "uniform_candidate_sampler")],
    *("tf.nn.dropout", "tf.nn.sampled_softmax_loss", "tf.nn.fractional_max_pool"),
    *("tf.image.random_flip_left_right", "tf.image.random_crop"),
]


@pytest.mark.parametrize("name", RANDOM)
def test_functions_with_a_random_state(name: str) -> None:
    function = functools.reduce(getattr, name.split(".")[1:], tf)
    assert tf_ops.find(function) is None
    assert tf_ops.is_random(function)
    twin = tf_ops.public_twin(function)
    if name.startswith("tf.random.") and "sampler" not in name:
        assert twin is not None and twin.rpartition(".")[2].startswith("stateless_")
    if twin is not None:
        assert twin in library.names()


@pytest.mark.parametrize("name", ["stateless_normal", "split", "fold_in", "stateless_gamma"])
def test_functions_of_a_seed(name: str) -> None:
    assert not tf_ops.is_random(getattr(tf.random, name))


@pytest.mark.parametrize(
    ("name", "raw"),
    [("matmul", "MatMul"), ("reduce_sum", "Sum"), ("concat", "ConcatV2"), ("no_such", None)],
)
def test_the_raw_op_that_a_name_suggests(name: str, raw: str | None) -> None:
    assert tf_ops.nearest_raw_op(name) == raw
