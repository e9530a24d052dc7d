"""Outputs that a library declares itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import tf_op
from tests.composite.tf_op import libraries


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> tf_op.Module:
    """Functions whose outputs have sizes of their own."""
    import tvm
    from tvm import te

    n, m = te.var("n"), te.var("m", "int64")
    x = te.placeholder((n, 4), "float32", name="x")
    z = te.placeholder((m,), "int8", name="z")
    twice = te.compute((n * 2, 4), lambda i, j: x[i // 2, j], name="twice")
    inner = te.compute((m - 1,), lambda i: z[i + 1], name="inner")
    first = te.compute((3,), lambda i: x[0, i], name="first")
    widened = te.compute((m, 3), lambda i, j: z[i].astype("int32") + first[j].astype("int32"))
    open_ = te.compute((te.var("k"),), lambda i: x[0, 0], name="open")
    functions = {
        "twice": te.create_prim_func([x, twice]),
        "pair": te.create_prim_func([x, z, inner, widened]),
        "open": te.create_prim_func([x, open_]),
    }
    module = tvm.IRModule({k: f.with_attr("global_symbol", k) for k, f in functions.items()})
    path = tmp_path_factory.mktemp("shaped") / "shaped.so"
    tvm.compile(module, target=tvm.target.Target({"kind": "llvm"})).export_library(str(path))
    return tf_op.Module(path)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
Z = np.arange(5, dtype=np.int8)


def traced(function: Any, *specs: tf.TensorSpec) -> Any:
    return tf.function(function).get_concrete_function(*specs)


def test_nothing_need_be_said_of_the_outputs(kernels: tf_op.Module, shaped: tf_op.Module) -> None:
    row_sums, twice = kernels["row_sums"], shaped["twice"]
    np.testing.assert_array_equal(row_sums(X), X.sum(1))
    np.testing.assert_array_equal(twice(X), np.repeat(X, 2, 0))
    assert kernels["copy_int16"](np.array([1, 2], np.int16)).dtype == tf.int16
    open_rows = tf.TensorSpec([None, 4])
    assert traced(row_sums, tf.TensorSpec([3, 4])).output_shapes == [3]
    assert traced(twice, open_rows).output_shapes.as_list() == [None, 4]
    np.testing.assert_array_equal(traced(twice, open_rows)(tf.constant(X)), np.repeat(X, 2, 0))
    unknown = traced(twice, tf.TensorSpec(None))
    np.testing.assert_array_equal(unknown(tf.constant(X)), np.repeat(X, 2, 0))


def test_several_outputs(shaped: tf_op.Module) -> None:
    for function in (
        shaped.func("pair", outputs=2),
        shaped.func("pair", output_dtype=["int8", "int32"]),
        shaped.func("pair", [[4], [5, 3]], outputs=2),
    ):
        inner, widened = function(X, Z)
        np.testing.assert_array_equal(inner, Z[1:])
        np.testing.assert_array_equal(widened, Z[:, None] + X[0, :3].astype(np.int32))
        assert widened.dtype == tf.int32


def test_what_the_function_says_of_other_inputs(shaped: tf_op.Module) -> None:
    """Shapes are made up for them: the function itself says what is wrong."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="twice.*Mismatched x.ndim"):
        shaped["twice"](X[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="twice.*when calling"):
        shaped["twice"]()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"pair.*when calling"):
        shaped.func("pair", outputs=2)(X, Z, Z)


def test_what_does_not_follow_from_the_inputs_must_be_given(shaped: tf_op.Module) -> None:
    with pytest.raises(ValueError, match=r"open\(x.*the size k of its output open is none of an"):
        shaped.func("open")
    np.testing.assert_array_equal(shaped.func("open", [7])(X), np.zeros(7))
    with pytest.raises(ValueError, match="twice has 2 parameters .* cannot have 3 outputs"):
        shaped.func("twice", outputs=3)


def test_a_library_that_says_nothing(foreign: tf_op.Module, tmp_path: Path) -> None:
    """One float32 output of the shape of the first input, as RFC #4464 has it."""
    assert "float32" in repr(foreign.func(foreign.functions[0]))
    copy = tmp_path / "gone.so"
    copy.write_bytes(libraries.kernels().read_bytes() + b"\0")
    module = tf_op.Module(copy)
    copy.unlink()
    assert "float32" in repr(module["copy_int16"])


def test_the_ir_of_a_program_says_what_its_functions_return() -> None:
    program = tf_op.Module(libraries.program(), ir=libraries.layers())
    x, w = tf.ones([3, 4]), tf.ones([4, 5])
    main, pair = program["main"], program["pair"]
    np.testing.assert_array_equal(main(x, w), np.full([3, 5], 4.0))
    open_rows = tf.TensorSpec([None, 4])
    assert traced(main, tf.TensorSpec([3, 4]), tf.TensorSpec([4, 5])).output_shapes == [3, 5]
    assert traced(main, open_rows, tf.TensorSpec([4, 5])).output_shapes.as_list() == [None, 5]
    np.testing.assert_array_equal(pair(x)[1], np.full([3], 4.0))
    assert traced(pair, tf.TensorSpec([3, 4])).output_shapes == [[3, 4], [3]]
    given = program.func("main", output_shape=[7, 5])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[3,5\], not \[7,5\]"):
        given(x, w)
    with pytest.raises(ValueError, match="ir has no function addone, but main, pair"):
        tf_op.Module(libraries.kernels(), ir=libraries.layers()).func("addone", returns=True)
