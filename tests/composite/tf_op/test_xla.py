"""Functions of libraries inside of functions that XLA compiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import tf_op
from tests.composite.tf_op import libraries

CALL = "custom_call"
X = tf.constant([1.0, 2.0, 3.0])


def compiled(function: Any) -> Any:
    return tf.function(function, jit_compile=True)


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_without_being_asked_xla_says_what_it_cannot_compile(kernels: tf_op.Module) -> None:
    function = compiled(lambda x: 2 * kernels["addone"](x))
    for _ in range(2):
        with pytest.raises(
            tf.errors.UnimplementedError,
            match=r"addone is a function of a library .*, which XLA cannot compile: .*xla=\"custom",
        ):
            function(X)
    same(kernels["addone"](X), X + 1)


def test_a_custom_call_computes_what_the_op_does(kernels: tf_op.Module) -> None:
    addone = kernels.func("addone", xla=CALL)
    sums = kernels.func("row_sums", xla=CALL)
    doubled = compiled(lambda x: 2 * addone(x * 3))
    for size in (3, 0, 100):
        x = tf.range(size, dtype=tf.float32)
        same(doubled(x), 2 * (x * 3 + 1))
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    moved = compiled(lambda m: sums(m) + sums(tf.transpose(m)[:3]))  # a layout of its own
    same(moved(rows), rows.sum(1) + rows.T[:3].sum(1))
    same(compiled(kernels.func("scalar", xla=CALL))(tf.constant(2.0)), 3.0)
    rank8 = np.arange(2**8, dtype=np.float32).reshape([2] * 8)
    same(compiled(kernels.func("rank8", xla=CALL))(rank8), rank8 + 1)
    parallel = kernels.func("parallel", xla=CALL)  # with a loop on threads and workspace
    x = np.random.default_rng(0).normal(size=[500, 64]).astype(np.float32)
    before = composite.stats()["parallel_launches"]
    same(compiled(parallel)(x), 2 * x[:, ::-1] + 1)
    assert composite.stats()["parallel_launches"] == before + 1


def test_a_custom_call_takes_all_dtypes_and_64_inputs(kernels: tf_op.Module) -> None:
    copies = [(d, kernels.func(f"copy_{d}", xla=CALL)) for d in libraries.DTYPES]
    x = tf.constant([0.0, 1.0, 2.0, 3.0, 1.0])
    all_of = compiled(
        lambda *given: [copy(one) for (_, copy), one in zip(copies, given, strict=True)]
    )
    given = [tf.cast(x, dtype) for dtype, _ in copies]
    for one, y in zip(given, all_of(*given), strict=True):
        assert y.dtype == one.dtype
        same(tf.cast(y, tf.float32), tf.cast(one, tf.float32))
    many = kernels.func("many", output_dtype=["float32"] * 16, xla=CALL)
    outputs = compiled(lambda x: many(*[x + i for i in range(64)]))(tf.zeros([3]))
    for i, y in enumerate(outputs):
        same(y, np.full(3, sum(range(i, 64, 16)), np.float32))


def test_shapes_of_a_custom_call_are_known_while_it_compiles(kernels: tf_op.Module) -> None:
    addone = kernels.func("addone", xla=CALL)
    same(compiled(lambda x: addone(x, output_shape=tf.shape(x)))(X), X + 1)
    with pytest.raises(tf.errors.UnimplementedError, match="output 0 is not known while XLA"):
        compiled(lambda x, n: addone(x, output_shape=n))(X, tf.constant([3]))


def test_what_a_function_raises_is_the_status_of_the_step(
    kernels: tf_op.Module, foreign: tf_op.Module
) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"addone .*Mismatched A\.dtype"):
        compiled(kernels.func("addone", xla=CALL))(tf.constant([1, 2]))
    with pytest.raises(tf.errors.InternalError, match="it threw: thrown"):
        compiled(foreign.func("throws", xla=CALL))(X)
    with pytest.raises(tf.errors.OutOfRangeError, match="IndexError: index 7"):
        compiled(foreign.func("out_of_range", xla=CALL))(X)
    same(compiled(kernels.func("addone", xla=CALL))(X), X + 1)


def test_gradients_of_custom_calls_are_compiled_too(kernels: tf_op.Module) -> None:
    product = kernels.func("vector_add", xla=CALL)
    addone = kernels.func("addone", xla=CALL)
    product.gradient(lambda op, dy: [addone(dy), 3 * dy])

    def gradients(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = product(x, 2 * x)
        return tape.gradient(y, x)

    same(compiled(gradients)(X), gradients(X))


def test_programs_and_live_functions_are_called_with_copies(program: tf_op.Module) -> None:
    import tvm_ffi

    kept: list[Any] = []

    def keep(x: Any, y: Any) -> None:
        kept.append(np.from_dlpack(x))
        np.from_dlpack(y)[:] = kept[-1] / 2

    halve = tf_op.function(tvm_ffi.convert(keep), xla=CALL)
    before = composite.stats()["copies"]
    same(compiled(lambda x: halve(x + 1))(X), (X + 1) / 2)
    assert composite.stats()["copies"] == before + 1
    compiled(lambda x: x * 7)(X)
    same(kept[0], X + 1)
    x, w = tf.ones([3, 4]), tf.ones([4, 5])
    layer = program.func("main", output_shape=[3, 5], xla=CALL)
    same(compiled(lambda x: layer(x, w) * 2)(x), np.full([3, 5], 8.0))
    wrong = program.func("main", output_shape=[3, 6], xla=CALL)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[3,5\], not the one"):
        compiled(lambda x: wrong(x, w))(x)


def test_effects_stay_and_a_saved_model_keeps_the_consent(
    kernels: tf_op.Module, tmp_path: Path
) -> None:
    import tvm_ffi

    calls = []
    counted = tf_op.function(tvm_ffi.convert(lambda x, y: calls.append(1)), stateful=True, xla=CALL)

    def unused(x: Any) -> Any:
        counted(x)
        return x + 1

    same(compiled(unused)(X), X + 1)
    assert calls == [1]
    model = tf.Module()
    model.call = compiled(kernels.func("addone", xla=CALL))
    model.call.get_concrete_function(tf.TensorSpec([3]))
    tf.saved_model.save(model, str(tmp_path / "model"))
    same(tf.saved_model.load(str(tmp_path / "model")).call(X), X + 1)


def test_what_is_no_way_to_be_called_by_xla_is_refused(kernels: tf_op.Module) -> None:
    with pytest.raises(ValueError, match="xla='call': None, or 'custom_call'"):
        kernels.func("addone", xla="call")
    with pytest.raises(ValueError, match="on the CPU alone"):
        kernels.func("addone", xla=CALL, device="GPU")
