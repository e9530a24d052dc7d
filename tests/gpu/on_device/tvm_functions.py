"""Functions of libraries on GPUs: they give their work to TensorFlow's stream."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import tf_op
from composite.compiler.tvm.cuda import nvrtc
from tests.gpu.devices import GPU, OTHER_GPU, Devices, build, with_kernels

os.environ |= with_kernels()

CUDA = """
extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
"""

# What a CUDA function of TVM's does on the host: it asks for the stream, and launches there.
HOST = r"""
#include <cuda_driver.h>
#include <stdint.h>
typedef struct {
  void* data;
  int32_t device, number, ndim;
  uint8_t dtype[4];
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;
typedef struct { int32_t type; uint32_t zero; char* value; } any;
/* Of a tensor object of TVM's, or of one that is passed by its address. */
static const tensor* tensor_of(any one) {
  return (const tensor*)(one.type == 70 ? one.value + 24 : one.value);
}
extern void* TVMFFIEnvGetStream(int32_t device, int32_t number);
extern void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
static int fail(const char* what) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", what);
  return -1;
}
static void* modules[2];
int __tvm_ffi_vector_add(void* self, const any* args, int32_t count, any* result) {
  if (count != 3) return fail("Expected 3 arguments");
  const tensor *x = tensor_of(args[0]), *y = tensor_of(args[1]), *z = tensor_of(args[2]);
  if (x->device != 2 || x->number < 0 || x->number > 1) return fail("Expected device type cuda");
  void* function;
  int n = (int)x->shape[0];
  void** module = &modules[x->number];
  if (*module == NULL && cuModuleLoadData(module, image) != 0) return fail("no module");
  if (cuModuleGetFunction(&function, *module, "add") != 0) return fail("no function");
  const void* places[] = {&x->data, &y->data, &z->data, &n};
  void* stream = TVMFFIEnvGetStream(x->device, x->number);
  if (n == 0) return 0;
  const int failed = cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream, places, 0);
  return failed ? fail("not launched") : 0;
}
"""
HEADER = """
#include <stddef.h>
int cuModuleLoadData(void**, const void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, const void**, void**);
"""

X, Y = np.arange(100, dtype=np.float32), np.linspace(0, 1, 100, dtype=np.float32)


@pytest.fixture(scope="module")
def library(devices: Devices, tmp_path_factory: pytest.TempPathFactory) -> tf_op.Module:
    folder = tmp_path_factory.mktemp("tvm_functions")
    image = nvrtc.image(CUDA, "sm_80", is_portable=False)
    words = ",".join(map(str, image))
    (folder / "cuda_driver.h").write_text(
        f"{HEADER}\nstatic const unsigned char image[] __attribute__((aligned(16))) = {{{words}}};",
        encoding="utf-8",
    )
    (folder / "host.c").write_text(HOST, encoding="utf-8")
    made = ["-o", "host.so", str(build())]
    command = ["cc", "-O1", "-w", "-shared", "-fPIC", "-I.", "host.c", *made]
    subprocess.run(command, cwd=folder, check=True)
    return tf_op.Module(folder / "host.so")


@pytest.fixture(scope="module")
def add(library: tf_op.Module) -> tf_op.TvmFunction:
    return library.func("vector_add", device="GPU")


def test_eager_calls_on_each_device(devices: Devices, add: tf_op.TvmFunction) -> None:
    for number, device in enumerate((GPU, OTHER_GPU)):
        before = devices.kernels(number)
        with tf.device(device):
            z = add(tf.constant(X), tf.constant(Y))
        assert z.device.endswith(device[1:])
        np.testing.assert_array_equal(z, X + Y)
        assert devices.kernels(number) == before + 1


def test_the_work_of_the_stream_comes_in_order(add: tf_op.TvmFunction, devices: Devices) -> None:
    with tf.device(GPU):
        x, y, two = tf.constant(X), tf.constant(Y), tf.constant(2.0)
        with devices.held():  # whoever waits here waits for ever
            z = add(x * two, y) * two
        np.testing.assert_allclose(z, (2 * X + Y) * 2, rtol=1e-6)


@pytest.mark.parametrize(
    "shape",
    [
        [100], lambda x, y: [x[0]], tf_op.same_as(1),
        lambda x, y: [tf.reduce_max(tf.stack([x[0], 100]))],
    ],
)  # fmt: skip
def test_functions_and_sessions(library: tf_op.Module, shape: Any) -> None:
    add = library.func("vector_add", shape, device="GPU")
    spec = tf.TensorSpec([None], tf.float32)
    np.testing.assert_array_equal(tf.function(add, input_signature=[spec, spec])(X, Y), X + Y)
    graph = tf.Graph()
    with graph.as_default(), tf.device(GPU):
        fed = [tf.compat.v1.placeholder(tf.float32, [None]) for _ in range(2)]
        z = add(*fed)
    with tf.compat.v1.Session(graph=graph) as session:
        np.testing.assert_array_equal(session.run(z, dict(zip(fed, (X, Y), strict=True))), X + Y)


def test_a_shape_of_the_call_lies_in_the_host_s_memory(add: tf_op.TvmFunction) -> None:
    with tf.device(GPU):
        x, y = tf.constant(X), tf.constant(Y)
        np.testing.assert_array_equal(add(x, y, output_shape=tf.shape(x)), X + Y)
        np.testing.assert_array_equal(add(x, y, output_shape=[tf.size(x)]), X + Y)


def test_a_gradient_by_the_function_itself(add: tf_op.TvmFunction) -> None:
    @add.gradient
    def _(op: Any, dz: Any) -> Any:
        return add(dz, dz), dz

    with tf.device(GPU), tf.GradientTape() as tape:
        x, y = tf.constant(X), tf.constant(Y)
        tape.watch([x, y])
        z = add(x, y)
    dx, dy = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(dx, np.full(100, 2))
    np.testing.assert_array_equal(dy, np.ones(100))


def test_a_saved_model_carries_it(library: tf_op.Module, tmp_path: Path) -> None:
    model = tf.Module()
    model.library = library.asset()
    spec = tf.TensorSpec([None], tf.float32)
    add = library.func("vector_add", device="GPU")
    model.call = tf.function(add, input_signature=[spec, spec])
    tf.saved_model.save(model, str(tmp_path))
    loaded = composite.load_model(str(tmp_path), native_code=True)
    np.testing.assert_array_equal(loaded.call(X, Y), X + Y)


def test_errors_are_statuses(library: tf_op.Module, add: tf_op.TvmFunction) -> None:
    with tf.device(GPU), pytest.raises(tf.errors.InvalidArgumentError, match="Expected 3 arg"):
        add(tf.constant(X))
    with (
        tf.device("/CPU:0"),
        pytest.raises(
            tf.errors.InvalidArgumentError, match="vector_add.*Expected device type cuda"
        ),
    ):
        library["vector_add"](X, Y)
    with pytest.raises(ValueError, match="returns its outputs"):
        library.func("vector_add", returns=True, device="GPU")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no device is called TPU"):
        library.func("vector_add", device="TPU")


def test_the_examples_beside_gpus(tmp_path: Path) -> None:
    """What runs on the CPU is placed there, inputs and outputs being copied."""
    from examples.tvm_functions import functions

    functions.compiled(functions.kernels()).export_library(str(tmp_path / "kernels.so"))
    kernels = tf_op.Module(tmp_path / "kernels.so")
    layers = tf_op.Module(functions.compiled(functions.TwoLayers))["main"]
    weights = [np.ones(s, np.float32) for s in ([8, 16], [16], [16, 4], [4])]

    @tf.function
    def call(x: Any, rows: Any) -> Any:
        with tf.device(GPU):
            return kernels["vector_add"](kernels["addone"](x * 2.0), x), layers(rows, *weights)

    z, y = call(X, np.ones([3, 8], np.float32))
    np.testing.assert_array_equal(z, 3 * X + 1)
    np.testing.assert_array_equal(y, np.full([3, 4], 9 * 16 + 1))


def test_a_kernel_for_the_cpu_is_no_function_for_gpus() -> None:
    from tests.composite.tf_op import libraries

    addone = tf_op.Module(libraries.kernels()).func("addone", device="GPU")
    with (
        tf.device(GPU),
        pytest.raises(tf.errors.InvalidArgumentError, match="addone of .* is a kernel for the CPU"),
    ):
        addone(tf.constant(X))
