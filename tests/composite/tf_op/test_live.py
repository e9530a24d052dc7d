"""Objects of TVM that live in this process as ops: they are exported where they can be."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import tf_op
from composite.tf_op import live
from tests.composite.tf_op import libraries

X = tf.constant([1.0, 2.0])


def test_what_tvm_compiled_is_exported() -> None:
    import tvm

    function = libraries.elementwise("plusthree", (4,), "float32", lambda x: x + 3)
    made = tvm.compile(tvm.IRModule({"plusthree": function}))
    module = tf_op.Module(made)
    assert module.path is not None and module.path.is_file()
    assert module.functions[-1] == "plusthree" and len(module.library) == 64
    np.testing.assert_array_equal(module["plusthree"](np.ones(4, np.float32)), np.full(4, 4.0))


def test_a_program_that_was_compiled_is_exported() -> None:
    module = tf_op.Module(libraries.program_executable())
    x, w = tf.ones([2, 4]), tf.ones([4, 5])
    np.testing.assert_array_equal(module["main"](x, w), np.full([2, 5], 4.0))
    assert module.path is not None


def test_what_cannot_be_exported_serves_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(_: Any) -> Any:
        raise RuntimeError("there is no linker")

    monkeypatch.setattr(live, "_export", no_compiler)
    module = tf_op.Module(libraries.program_executable())
    assert module.path is None and module.library.startswith("process-")
    x, w = tf.ones([2, 4]), tf.ones([4, 5])
    np.testing.assert_array_equal(module["main"](x, w), np.full([2, 5], 4.0))
    with pytest.raises(ValueError, match="live in this process alone"):
        module.asset()


def test_modules_and_machines_of_tvm() -> None:
    import tvm

    kernels = tf_op.Module(tvm.runtime.load_module(str(libraries.kernels())))
    np.testing.assert_array_equal(kernels["addone"](X), X + 1)
    with pytest.raises(tf.errors.NotFoundError, match="no function nope"):
        kernels["nope"]
    loaded = tvm.runtime.load_module(str(libraries.program()))
    machine = tf_op.Module(tvm.relax.VirtualMachine(loaded, tvm.cpu()))
    x, w = tf.ones([2, 4]), tf.ones([4, 5])
    np.testing.assert_array_equal(machine["main"](x, w), np.full([2, 5], 4.0))
    assert tf_op.Module(loaded).library == tf_op.Module(loaded).library


def test_a_function_of_a_machine() -> None:
    import tvm

    loaded = tvm.runtime.load_module(str(libraries.program()))
    machine = tvm.relax.VirtualMachine(loaded, tvm.cpu())
    layer = tf_op.function(machine["main"], returns=True, output_shape=[None, 5])
    x, w = tf.ones([2, 4]), tf.ones([4, 5])
    np.testing.assert_array_equal(tf.function(layer)(x, w), np.full([2, 5], 4.0))


def packed(function: Any) -> Any:
    import tvm_ffi

    return tvm_ffi.convert(function)


def test_python_functions_fill_and_return() -> None:
    kept = []

    def fill(x: Any, y: Any) -> None:
        kept.append(x)
        np.from_dlpack(y)[:] = 2 * np.from_dlpack(x)

    double = tf_op.function(packed(fill))
    np.testing.assert_array_equal(double(X), 2 * X)
    np.testing.assert_array_equal(tf.function(double)(X), 2 * X)
    np.testing.assert_array_equal(np.from_dlpack(kept[0]), X)  # what it keeps stays there
    first = tf_op.function(packed(lambda *inputs: inputs[0]), returns=True, output_dtype="int32")
    x = tf.constant([[1, 2], [3, 4]])
    np.testing.assert_array_equal(first(x, X), x)
    nothing = tf_op.function(packed(lambda *_: None), returns=True, output_dtype=[], stateful=True)
    assert nothing(X) is None


def _every_other(x: Any) -> Any:
    import tvm_ffi

    return tvm_ffi.from_dlpack(np.from_dlpack(x)[::2])


def test_errors_of_python_functions_are_statuses() -> None:
    def fails(*_: Any) -> None:
        raise ValueError("seven")

    with pytest.raises(tf.errors.InvalidArgumentError, match="raised ValueError: seven"):
        tf_op.function(packed(fails))(X)
    returns_text = tf_op.function(packed(lambda _: "text"), returns=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="result 0 .* no tensor"):
        returns_text(X)
    gaps = tf_op.function(packed(_every_other), returns=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a tensor with gaps"):
        gaps(tf.range(6, dtype=tf.float32))
    with pytest.raises(TypeError, match=r"tvm_ffi\.convert"):
        tf_op.function(lambda x: x)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TypeError, tf.errors.InvalidArgumentError),
        (ValueError, tf.errors.InvalidArgumentError),
        (IndexError, tf.errors.OutOfRangeError),
        (MemoryError, tf.errors.ResourceExhaustedError),
        (RuntimeError, tf.errors.InternalError),
        (KeyError, tf.errors.InternalError),
    ],
)
def test_each_kind_of_error_has_its_status(error: type[Exception], status: type) -> None:
    def fails(*_: Any) -> None:
        raise error("seven")

    with pytest.raises(status, match=f"raised {error.__name__}: .*seven"):
        tf_op.function(packed(fails))(X)


DTYPES = ("complex64", "complex128", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_that_no_kernel_of_tvm_has_are_passed(dtype: str) -> None:
    seen = []

    def copy(x: Any, y: Any) -> None:
        if not dtype.startswith("complex"):  # of which tvm-ffi 0.1 has no name
            seen.extend([str(x.dtype), str(y.dtype)])
        ctypes.memmove(y.data_ptr(), x.data_ptr(), numbers.nbytes)

    numbers = np.array([0.5, 1.0, -2.0]).astype(tf.as_dtype(dtype).as_numpy_dtype)
    y = tf_op.function(packed(copy), output_dtype=dtype)(tf.constant(numbers))
    assert y.dtype == dtype and set(seen) <= {dtype}
    assert y.numpy().tobytes() == numbers.tobytes()


def test_calls_of_functions_leak_nothing() -> None:
    import sys

    x = tf.ones([8])
    function = tf_op.function(packed(lambda x: x), returns=True)
    for _ in range(200):
        function(x)
    before = sys.getrefcount(x)
    for _ in range(1000):
        function(x)
    assert sys.getrefcount(x) == before


def test_a_node_of_another_process_says_so(run_python: Any) -> None:
    code = """
import tensorflow as tf
from composite.binding import native
native.library()
try:
    tf.raw_ops.CompositeTvmCall
except AttributeError:
    pass
graph = tf.Graph()
with graph.as_default():
    node = graph.create_op(
        "CompositeTvmCall", [tf.ones([2])], [tf.float32],
        attrs={"function": tf.compat.v1.AttrValue(s=b"process-3:f"),
               "Tin": tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(type=[1])),
               "Tout": tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(type=[1]))})
try:
    tf.compat.v1.Session(graph=graph).run(node.outputs[0])
except tf.errors.FailedPreconditionError as error:
    print(error.message)
"""
    assert "function f: it is a function of another process" in run_python(code).stdout
