"""composite_call_kernel: kernels outside a graph, and calls that are none."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.binding import native
from composite.kernels.host import Argument, _Call
from tests.runtime import kernel_support as support

_KERNELS = r"""
int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int);
int (*__TVMBackendParallelBarrier)(int, Env*);
void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);

/* y[task] = the number of tasks, which none of them knows before all have met. */
static int part(int task, Env* env, void* data) {
  float* y = ((Tensor*)data)->data;
  y[task] = 1;
  __TVMBackendParallelBarrier(task, env);
  if (task == 0) for (int i = 1; i < env->num_task; ++i) y[0] += y[i];
  __TVMBackendParallelBarrier(task, env);
  y[task] = y[0];
  return 0;
}
KERNEL(NAME) {
  if (count != 1) return raise_error("TypeError", "expected 1 tensor");
  if (ARG(0)->ndim != 1) return raise_error("ValueError", "expected a vector");
  return __TVMBackendParallelLaunch(part, ARG(0), 0);
}
static int skips(int task, Env* env, void* data) {
  return task == 1 ? 0 : __TVMBackendParallelBarrier(task, env);
}
KERNEL(skips) { return __TVMBackendParallelLaunch(skips, 0, 0); }
KERNEL(workspace) {
  float* work = __TVMBackendAllocWorkspace(1, 0, 400, 2, 32);
  float* y = FLOATS(0);
  for (int i = 0; i < 100; ++i) y[i] = work[i];
  return 0;
}
KERNEL(no_memory) {
  return __TVMBackendAllocWorkspace(1, 0, (uint64_t)1 << 60, 2, 32) == 0 ? -1 : 0;
}
static int product(int task, Env* env, void* data) {
  const Any* args = data;
  FLOATS(1)[task] = FLOATS(0)[0] * FLOATS(0)[1];
  return 0;
}
KERNEL(product) { return __TVMBackendParallelLaunch(product, (void*)args, 0); }
KERNEL(dtype) {
  float* y = FLOATS(1);
  y[0] = ARG(0)->code, y[1] = ARG(0)->bits, y[2] = ARG(0)->lanes;
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return support.build(tmp_path_factory.mktemp("kernels"), "tasks", _KERNELS)


def array(values: np.ndarray[Any, Any], **changed: Any) -> Argument:
    shape = (ctypes.c_int64 * values.ndim)(*values.shape)
    dtype = tf.as_dtype(values.dtype).as_datatype_enum
    made = Argument(values.ctypes.data, shape, values.ndim, dtype)
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def invoke(library: Path, kernel: str, /, *arrays: Argument, **changed: Any) -> None:
    """A call with fields changed. Raises the tf.errors class of its status."""
    size, path = ctypes.sizeof(_Call), str(library).encode()
    arguments = (Argument * len(arrays))(*arrays)
    asked = _Call(size, path, kernel.encode(), arguments, len(arrays), 1)
    for name, value in changed.items():
        setattr(asked, name, value)
    native.invoke(native.library().composite_call_kernel, ctypes.byref(asked))


@pytest.mark.parametrize("tasks", [1, 2, 3, 8])
def test_all_tasks_of_a_loop_run_at_once(library: Path, tasks: int) -> None:
    y = np.zeros(8, np.float32)
    invoke(library, "tasks", array(y), tasks=tasks)
    assert y.tolist() == [tasks] * tasks + [0] * (8 - tasks)


def test_kernels_compute_as_on_threads_of_tensorflow(library: Path) -> None:
    """These take denormals for zeros, in each task; the caller's own floating-point modes stay."""
    factors, y = np.array([1e-40, np.inf], np.float32), np.zeros(3, np.float32)
    invoke(library, "product", array(factors), array(y), tasks=3)
    assert np.isnan(y).all()
    with np.errstate(invalid="raise"):
        assert (factors[:1] * np.float32(np.inf))[0] == np.inf


def test_no_counter_moves(library: Path) -> None:
    before = support.stats()
    invoke(library, "tasks", array(np.zeros(3, np.float32)), tasks=3)
    assert support.stats() == before


def test_dtypes_are_those_of_dlpack(library: Path) -> None:
    expected = {
        tf.float16: (2, 16), tf.bfloat16: (4, 16), tf.float64: (2, 64), tf.int8: (0, 8),
        tf.uint32: (1, 32), tf.bool: (6, 8),
    }  # fmt: skip
    for dtype, (code, bits) in expected.items():
        y = np.zeros(3, np.float32)
        invoke(library, "dtype", array(np.zeros(2, dtype.as_numpy_dtype)), array(y))
        assert y.tolist() == [code, bits, 1]


def test_workspace_has_no_numbers(library: Path) -> None:
    """A kernel that reads what it did not write must not find a zero there by luck."""
    y = np.zeros(100, np.float32)
    invoke(library, "workspace", array(y))
    assert np.isnan(y).all()


def refused(error: type[tf.errors.OpError], match: str) -> Any:
    return pytest.raises(error, match=match)


def test_what_a_kernel_raises(library: Path) -> None:
    y = array(np.zeros((2, 2), np.float32))
    with refused(tf.errors.InvalidArgumentError, "kernel tasks raised ValueError: expected a vec"):
        invoke(library, "tasks", y)
    with refused(tf.errors.InvalidArgumentError, "kernel tasks raised TypeError: expected 1 tens"):
        invoke(library, "tasks")
    with refused(tf.errors.ResourceExhaustedError, "no_memory raised MemoryError: no memory for"):
        invoke(library, "no_memory")
    invoke(library, "skips")
    with refused(tf.errors.InternalError, "a task ended while others waited for it"):
        invoke(library, "skips", tasks=3)


def test_a_library_or_a_kernel_that_is_not_there(library: Path, tmp_path: Path) -> None:
    with refused(tf.errors.NotFoundError, r"tasks\.so has no kernel absent"):
        invoke(library, "absent")
    with refused(tf.errors.NotFoundError, r"gone\.so"):
        invoke(tmp_path / "gone.so", "tasks")
    text = tmp_path / "text.so"
    text.write_text("no library")
    with refused(tf.errors.FailedPreconditionError, r"text\.so does not load"):
        invoke(text, "tasks")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rank": -1}, "argument 0 of kernel tasks: its rank is -1"),
        ({"rank": 255}, "its rank is 255"),
        ({"shape": None}, "its shape is a null pointer"),
        ({"data": None}, "its data is a null pointer"),
        ({"dtype": tf.string.as_datatype_enum}, "no kernel takes its dtype, 7"),
        ({"dtype": -5}, "no kernel takes its dtype, -5"),
        ({"shape": (ctypes.c_int64 * 1)(-2)}, "argument 0 of kernel tasks: .*-2"),
        ({"shape": (ctypes.c_int64 * 2)(1 << 40, 1 << 40), "rank": 2}, "argument 0 of kernel"),
    ],
)
def test_an_array_that_is_none(library: Path, changed: dict[str, Any], message: str) -> None:
    y = np.zeros(8, np.float32)
    with refused(tf.errors.InvalidArgumentError, message):
        invoke(library, "tasks", array(y, **changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": 8}, r"call\.size: 8, "),
        ({"library": None}, r"call\.library: a null pointer"),
        ({"kernel": None}, r"call\.kernel: a null pointer"),
        ({"arguments": None}, r"call\.arguments: a null pointer"),
        ({"count": 1 << 40}, r"call\.count: 1099511627776"),
        ({"tasks": 0}, r"call\.tasks: 0 is not from 1 to 64"),
        ({"tasks": 65}, r"call\.tasks: 65 is not"),
    ],
)
def test_a_call_that_is_none(library: Path, changed: dict[str, Any], message: str) -> None:
    with refused(tf.errors.InvalidArgumentError, message):
        invoke(library, "tasks", array(np.zeros(8, np.float32)), **changed)


def test_null_pointers() -> None:
    function = native.library().composite_call_kernel
    with refused(tf.errors.InvalidArgumentError, "call: a null pointer"):
        native.invoke(function, None)
    assert function(None, None) == 3  # no room for the message


def test_arrays_without_elements_need_no_memory(library: Path) -> None:
    empty = array(np.zeros((0,), np.float32), data=None)
    y = np.zeros(3, np.float32)
    invoke(library, "dtype", empty, array(y))
    assert y.tolist() == [2, 32, 1]
