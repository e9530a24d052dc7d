"""The private C++ APIs of TensorFlow 2.21 that direct calls use are there and do what we think."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from composite.binding import tensorflow_version
from composite.binding.records import attr_value
from composite.ops import call, direct

FUNCTIONS = (
    "_Z22EagerTensor_CheckExactPK7_object",
    "_Z18EagerTensor_HandlePK7_object",
    "_Z21EagerTensorFromHandleP16TFE_TensorHandleb",
    "_Z21TFE_Py_TapeSetIsEmptyv",
    "_Z21TFE_Py_RecordGradientP7_objectS0_S0_S0_S0_",
)


def test_the_functions_of_tensorflow() -> None:
    assert tf.__version__.startswith(tensorflow_version.MINORS)
    folder = Path(tf.__file__).parent / "python"
    library = ctypes.CDLL(str(folder / "lib_pywrap_tensorflow_common.so"))
    assert [name for name in FUNCTIONS if not hasattr(library, name)] == []


def test_what_python_has_of_the_context() -> None:
    eager, here = call.eager_state()
    assert type(call.context_capsule()).__name__ == "PyCapsule"
    for name in ("_server_def", "_collective_ops_server_def", "_log_device_placement"):
        assert not getattr(eager, name), name
    assert (here.is_eager, here.device_name, [*here.op_callbacks]) == (True, "", [])
    assert isinstance(here.scope_name, str)


FLOAT = {"T": attr_value(tf.float32)}


def calls_of(op_name: str, inputs: int) -> direct.OpCalls:
    """An op of TensorFlow's, called directly with float32."""
    made = direct.of_op(op_name, FLOAT, inputs)
    calls = direct.OpCalls.new(op_name, inputs, 0)
    calls.add(made, (), ("T", tf.float32.as_datatype_enum), None)
    return calls


def called(calls: direct.OpCalls, *tensors: Any) -> Any:
    return calls.call(*call.eager_state(), *tensors)


@pytest.fixture(scope="module")
def identity() -> direct.OpCalls:
    return calls_of("Identity", 1)


@pytest.mark.parametrize(
    "given",
    [1.0, np.ones(2, np.float32), tf.Variable([1.0]), None, tf.TensorSpec([1]), object()],
    ids=["number", "array", "variable", "None", "spec", "object"],
)
def test_what_is_no_eager_tensor(identity: direct.OpCalls, given: Any) -> None:
    assert called(identity, given) is None


def test_symbolic_tensors_are_none(identity: direct.OpCalls) -> None:
    found: list[Any] = []
    tf.function(lambda x: found.append(called(identity, x)), autograph=False)(tf.ones([2]))
    assert found == [None]


def test_tensors_and_their_memory(identity: direct.OpCalls) -> None:
    x = tf.constant(np.arange(1000, dtype=np.float32))
    y = called(identity, x)
    assert type(y) is type(x) and y is not x
    np.testing.assert_array_equal(y, np.arange(1000))
    del x
    gc.collect()
    np.testing.assert_array_equal(y, np.arange(1000))


def test_an_output_does_not_take_the_memory_of_an_input() -> None:
    negative = calls_of("Neg", 1)  # which TensorFlow computes in place where nobody else looks
    x = tf.constant([1.0, 2.0])
    np.testing.assert_array_equal(called(negative, x), [-1.0, -2.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])
    y = called(negative, tf.constant([3.0, 4.0]))
    np.testing.assert_array_equal(called(negative, y), [3.0, 4.0])
    np.testing.assert_array_equal(y, [-3.0, -4.0])


def test_nothing_is_kept(identity: direct.OpCalls) -> None:
    x = tf.ones([3])
    before = sys.getrefcount(x), sys.getrefcount(None)
    for _ in range(100):
        called(identity, x)
        called(identity, 1.0)
    assert sys.getrefcount(x) == before[0]
    assert abs(sys.getrefcount(None) - before[1]) < 50
    y = called(identity, x)
    gone = weakref.ref(y)
    del y
    assert gone() is None


def test_other_threads_run_meanwhile() -> None:
    product = calls_of("MatMul", 2)
    x = tf.random.normal([1500, 1500])
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(3):
        called(product, x, x)
    done.set()
    thread.join()
    assert counted > 1000


def test_tapes_have_what_tensorflow_would_have_recorded() -> None:
    product = calls_of("Mul", 2)
    x, y = tf.constant([2.0, 3.0]), tf.constant([5.0, 7.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        z = called(product, x, y)
        w = called(product, z, z)
    np.testing.assert_array_equal(tape.gradient(z, x), y)
    np.testing.assert_array_equal(tape.gradient(w, x), 2 * x * y * y)
    assert tape.gradient(w, y) is None


def test_a_context_that_is_another(identity: direct.OpCalls) -> None:
    other = context.Context()
    _, here = call.eager_state()
    assert identity.call(other, here, tf.ones([1])) is None
    other.ensure_initialized()
    assert identity.call(other, here, tf.ones([1])) is NotImplemented


def raises(
    kind: type[Exception], message: str | None, function: Callable[..., Any], *args: Any
) -> None:
    with pytest.raises(kind, match=message):
        function(*args)


def test_bad_calls(identity: direct.OpCalls) -> None:
    eager, here = call.eager_state()
    raises(TypeError, "call.context", identity.call)
    raises(TypeError, "call.context", identity.call, eager, here)
    raises(AttributeError, "_server_def", identity.call, None, here, tf.ones([1]))
    raises(AttributeError, "device_name", identity.call, eager, None, tf.ones([1]))
    raises(TypeError, "add.made", identity.add)
    raises(TypeError, "add.made", identity.add, (), (1,), (), None)
    raises(IndexError, "tuple index", identity.add, (), (), (), None)
    raises(SystemError, None, identity.add, None, (), (), None)
    made = direct.of_op("Mul", FLOAT, 2)
    raises(ValueError, "another number of inputs", identity.add, made, (), (), None)
    raises(TypeError, None, identity.add, ("address", made.keep, made.capsule), (), (), None)
    raises(ValueError, "PyCapsule", identity.add, (made.address, None, None), (), (), None)


def test_an_error_is_the_hooks() -> None:
    def fail(code: int, message: str) -> None:
        raise LookupError(f"{code}: {message}")

    calls = direct.OpCalls.new("Mul", 2, 0)
    calls.add(direct.of_op("Mul", FLOAT, 2), (), (), fail)
    raises(LookupError, "3: Incompatible shapes", called, calls, tf.ones([2]), tf.ones([3]))
