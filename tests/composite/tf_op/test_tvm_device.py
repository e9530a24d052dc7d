"""Functions for devices of TVM's that TensorFlow does not know: their tensors are copied there."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import tf_op
from tests.conftest import RunPython

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("external_device.cc")
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that registers the device and has a function for it."""
    import tvm
    import tvm_ffi.libinfo as ffi

    root = Path(tvm.__file__).parent
    path = tmp_path_factory.mktemp("external") / "external.so"
    includes = [root / "include", ffi.find_include_path(), ffi.find_dlpack_include_path()]
    folders = [root / "lib", Path(ffi.find_libtvm_ffi()).parent]
    subprocess.run(
        [
            "g++", "-std=c++17", "-shared", "-fPIC", "-O1", "-o", str(path), str(SOURCE),
            *(f"-I{one}" for one in includes), *(f"-L{one}" for one in folders),
            *(f"-Wl,-rpath,{one}" for one in folders), "-ltvm_runtime", "-ltvm_ffi",
        ],
        check=True,
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def module(library: Path) -> tf_op.Module:
    return tf_op.Module(library)


def counts() -> np.ndarray:
    """Blocks that are held, copies there, copies back, and waits for the device."""
    import tvm_ffi

    return np.array(list(tvm_ffi.get_global_func("testing.external_counts")()))


@pytest.mark.parametrize(("device", "factor"), [("ext_dev", 2), ("ext_dev:0", 2), ("ext_dev:1", 3)])
def test_tensors_are_copied_there_and_back(module: tf_op.Module, device: str, factor: int) -> None:
    scale = module.func("scale", device=device)
    before, copies = counts(), composite.stats()["copies"]
    for call in (scale, scale, tf.function(scale)):
        np.testing.assert_array_equal(call(X), factor * X)
    assert list(counts() - before) == [0, 3, 3, 6]
    assert composite.stats()["copies"] == copies + 3
    np.testing.assert_array_equal(scale(np.zeros([0, 4], np.float32)), np.zeros([0, 4]))
    np.testing.assert_array_equal(scale(np.float32(3)), factor * 3)


def test_calls_of_several_threads(module: tf_op.Module) -> None:
    scale = module.func("scale", device="ext_dev")
    before = counts()
    with ThreadPoolExecutor(4) as pool:
        for i, y in enumerate(pool.map(lambda i: scale(X + i), range(100))):
            np.testing.assert_array_equal(y, 2 * (X + i))
    assert counts()[0] == before[0]


def test_a_saved_model_keeps_the_device(
    module: tf_op.Module, library: Path, tmp_path: Path, run_python: RunPython
) -> None:
    model: Any = tf.Module()
    scale = module.func("scale", device="ext_dev:1")
    model.call = tf.function(scale, input_signature=[tf.TensorSpec([3, 4])])
    tf.saved_model.save(model, str(tmp_path / "model"))
    code = """
import sys
import tensorflow as tf
from composite import tf_op

folder, library = sys.argv[1:]
tf_op.Module(library)
print(tf.saved_model.load(folder).call(tf.ones([3, 4])).numpy().sum())
"""
    assert run_python(code, str(tmp_path / "model"), str(library)).stdout.strip() == "36.0"


def test_a_device_that_is_not_here_is_an_error(module: tf_op.Module) -> None:
    for device in ("ext_dev:2", "opencl"):
        with pytest.raises(
            tf.errors.FailedPreconditionError, match=f"TVM has no device {device} in this process"
        ):
            module.func("scale", device=device)
    for device in ("fpga", "ext_dev:x", "ext_dev:-1", "cpu"):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"no device is called {device}"):
            module.func("scale", device=device)


def test_what_does_not_fit_a_device_is_refused(module: tf_op.Module) -> None:
    with pytest.raises(ValueError, match="on ext_dev only functions run that are passed them"):
        module.func("scale", device="ext_dev", returns=True)
    with pytest.raises(ValueError, match="code of XLA calls functions on the CPU alone"):
        module.func("scale", device="ext_dev", xla="custom_call")
    with pytest.raises(tf.errors.InvalidArgumentError, match="are not on the external device"):
        module["scale"](X)  # which says nothing of the device
    scale = module.func("scale", device="ext_dev")
    with pytest.raises(tf.errors.UnimplementedError, match="XLA cannot compile"):
        tf.function(scale, jit_compile=True)(X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="input 0 is string"):
        scale(tf.constant("a"))


def test_kernels_without_tvm_run_there_too(module: tf_op.Module, tmp_path: Path) -> None:
    """A library of C code that names no library of TVM, and asks where its tensors are."""
    source = tmp_path / "where.cc"
    source.write_text(
        """
#include <cstdint>
struct Tensor { void* data; int32_t device, id; };
struct Any { int32_t type, padding; Tensor* tensor; };
extern "C" void TVMFFIErrorSetRaisedFromCStrParts(const char*, const char**, int32_t);
extern "C" int __tvm_ffi_where(void*, const Any* arguments, int32_t count, Any*) {
  const bool there = count == 2 && arguments[0].tensor->device == 12 &&
                     arguments[1].tensor->device == 12 && arguments[1].tensor->id == 1;
  const char* parts[] = {there ? "there" : "not there"};
  TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 1);
  return -1;
}
"""
    )
    path = tmp_path / "where.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    where = tf_op.Module(path).func("where", output_dtype="float32", device="ext_dev:1")
    with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: there"):
        where(X)
