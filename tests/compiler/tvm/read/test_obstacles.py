"""All that is refused is named, where reading stops at the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered
from composite.compiler.tvm.read.obstacles import obstacles
from composite.compiler.tvm.read.reader import read_function


def library(function: Callable[..., Any], *specs: tf.TensorSpec) -> Any:
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    found = concrete.graph.as_graph_def().library
    found.function.insert(0, concrete.function_def)
    return found


X = tf.TensorSpec([4, 6], tf.float32)


def reasons(function: Callable[..., Any], *specs: tf.TensorSpec) -> list[str]:
    own = library(function, *specs)
    shapes = [spec.shape.as_list() for spec in specs]
    found = [one.reason for one in obstacles(own, shapes)]
    if found:
        with pytest.raises(NotCovered):
            read_function(own, shapes)
    else:
        read_function(own, shapes)
    return found


def test_a_function_that_is_read_has_none() -> None:
    assert reasons(lambda x: tf.tanh(x) @ tf.transpose(x), X) == []


def test_ops_without_a_lowering_are_all_named_and_what_follows_is_not() -> None:
    def function(x: Any) -> Any:
        return tf.math.erfinv(tf.math.erfinv(x)) + tf.math.lgamma(x)

    assert reasons(function, X) == [
        "op Erfinv is not in the kernel table", "op Erfinv is not in the kernel table",
        "op Lgamma is not in the kernel table",
    ]  # fmt: skip


def test_refusals_of_lowerings_that_do_not_need_each_other() -> None:
    def function(x: Any) -> Any:
        axis = tf.cast(x[0, 0], tf.int32)
        return tf.reduce_sum(x, axis=axis), tf.reduce_max(x, axis=axis), tf.math.erfinv(x)

    assert reasons(function, X) == [
        "op Erfinv is not in the kernel table",
        "Sum: its reduction axes is computed at run time",
        "Max: its reduction axes is computed at run time",
    ]


def test_what_an_op_without_lowering_reads_is_looked_at() -> None:
    assert reasons(lambda x: tf.math.real(tf.cast(x, tf.complex64)), X) == [
        "op Real is not in the kernel table",
        "Cast: dtype DT_COMPLEX64 is not covered",
    ]


def test_the_dtype_of_an_argument_is_named_and_the_others_are_read() -> None:
    def function(x: Any, y: Any) -> Any:
        return tf.math.erfinv(x), y + y

    assert reasons(function, X, tf.TensorSpec([2], tf.complex64)) == [
        "op Erfinv is not in the kernel table",
        "y: dtype DT_COMPLEX64 is not covered",
    ]


def test_a_loop_around_an_op_without_lowering_is_not_read() -> None:
    def function(x: Any) -> Any:
        return tf.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, tf.math.erfinv(y)),
            (0, x),
            maximum_iterations=3,
        )[1]

    assert reasons(function, X) == ["op Erfinv is not in the kernel table"]


def test_what_no_value_needs_is_not_looked_at() -> None:
    def function(x: Any) -> Any:
        tf.reduce_sum(x, axis=tf.cast(x[0, 0], tf.int32))
        return x * 2

    assert reasons(function, X) == []
