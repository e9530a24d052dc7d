"""Libraries from files: what is loaded, what is refused, and what the process maps for it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import tf_op
from tests.composite.tf_op import libraries
from tests.conftest import RunPython

X = tf.constant([1.0, 2.0])


def test_a_module_says_what_it_has(kernels: tf_op.Module) -> None:
    assert {"addone", "many", "parallel"} <= set(kernels.functions)
    assert not any(name.startswith("_") for name in kernels.functions)
    assert str(libraries.kernels()) in repr(kernels)
    assert "addone" in repr(kernels["addone"]) and "float32" in repr(kernels["addone"])


def test_a_missing_function_is_named_with_those_there_are(
    kernels: tf_op.Module, program: tf_op.Module
) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"no function plustwo; it has addone, "):
        kernels.func("plustwo")
    with pytest.raises(tf.errors.NotFoundError, match="no function plustwo"):
        kernels.func("plustwo", returns=False)
    with pytest.raises(tf.errors.NotFoundError, match="no function plustwo"):
        program["plustwo"]


def test_links_and_relative_paths(kernels: tf_op.Module, tmp_path: Path) -> None:
    link = tmp_path / "link.so"
    link.symlink_to(libraries.kernels())
    assert tf_op.Module(link).library == kernels.library
    assert tf_op.Module(os.path.relpath(libraries.kernels())).library == kernels.library


def test_a_path_may_be_given_by_name(kernels: tf_op.Module) -> None:
    for path in (libraries.kernels(), str(libraries.kernels())):
        module = tf_op.Module(lib_path=path)
        assert module.library == kernels.library and module.path == kernels.path
        addone = module.func("addone", output_shape=tf.shape(X), output_dtype="float")
        np.testing.assert_array_equal(addone(X), X + 1)
    with pytest.raises(tf.errors.NotFoundError, match="cannot open .*none.so"):
        tf_op.Module(lib_path="none.so")


def test_a_module_takes_one_library() -> None:
    with pytest.raises(TypeError, match="give its path .* as lib_path, and not both"):
        tf_op.Module(libraries.kernels(), lib_path=libraries.kernels())
    with pytest.raises(TypeError, match="give its path .* as lib_path, and not both"):
        tf_op.Module()


def test_what_is_no_library_is_refused(kernels: tf_op.Module, tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="cannot open .*none.so"):
        tf_op.Module(tmp_path / "none.so")
    with pytest.raises(tf.errors.PermissionDeniedError, match="not a regular file"):
        tf_op.Module(tmp_path)
    file = tmp_path / "lib.so"
    for content, message in (
        (b"", "is no shared library"),
        (b"#!/bin/sh\n", "is no shared library"),
        (b"\x7fELF" + bytes(60), "for another kind of machine"),
    ):
        file.write_bytes(content)
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            tf_op.Module(file)
    with pytest.raises(tf.errors.DataLossError, match=r"SHA-256 .* expected 00000000"):
        tf_op.Module(libraries.kernels(), sha256="0" * 64)
    with pytest.raises(TypeError, match="is no library"):
        tf_op.Module(3)


def test_a_library_that_is_cut_short_or_damaged_ends_no_process(tmp_path: Path) -> None:
    whole = libraries.foreign().read_bytes()
    file = tmp_path / "lib.so"
    for size in [*range(0, len(whole), 601), len(whole) - 1]:
        file.write_bytes(whole[:size])
        with pytest.raises(tf.errors.InvalidArgumentError, match="lib.so is"):
            tf_op.Module(file)


def test_a_library_that_lacks_something_says_what(tmp_path: Path) -> None:
    source = tmp_path / "needs.cc"
    source.write_text(
        'extern "C" int elsewhere(); extern "C" int __tvm_ffi_f(void*, void*, int, void*)'
        "{ return elsewhere(); }"
    )
    library = tmp_path / "needs.so"
    assert os.system(f"g++ -shared -fPIC -o {library} {source}") == 0
    with pytest.raises(tf.errors.FailedPreconditionError, match="undefined symbol: elsewhere"):
        tf_op.Module(library)


CUDA = """
import sys
import tensorflow as tf
import tvm
import tvm_ffi
from tvm import te
from composite import tf_op

made = "tvm_callback_cuda_compile"
tvm_ffi.register_global_func(made, lambda *_: bytearray(b"code"), override=True)
a = te.placeholder((64,), "float32", name="a")
added = te.create_prim_func([a, te.compute((64,), lambda i: a[i] + 1, name="b")])
schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": added}))
schedule.bind(schedule.get_loops(schedule.get_sblock("b", func_name="main"))[0], "threadIdx.x")
function = schedule.mod["main"].with_attr("global_symbol", "addone")
target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"}, host={"kind": "llvm"})
tvm.compile(tvm.IRModule({"addone": function}), target=target).export_library(sys.argv[1])
try:
    tf_op.Module(sys.argv[1])
except tf.errors.FailedPreconditionError as error:
    print(error.message)
"""


@pytest.mark.slow
def test_a_library_for_gpus_says_what_it_needs(tmp_path: Path, run_python: RunPython) -> None:
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("there is a GPU's driver")
    message = run_python(CUDA, str(tmp_path / "gpu.so")).stdout
    assert "gpu.so has functions for NVIDIA's GPUs: " in message
    assert "libtvm_runtime_cuda.so does not load: libcu" in message


def test_the_file_may_be_written_again(tmp_path: Path) -> None:
    file = tmp_path / "lib.so"
    file.write_bytes(libraries.kernels().read_bytes() + b"\0")
    addone = tf_op.Module(file)["addone"]
    file.write_bytes(b"")
    np.testing.assert_array_equal(addone(X), X + 1)


def test_kernels_need_no_tvm_and_programs_no_compiler(run_python: Any) -> None:
    code = """
import ctypes, sys
import tensorflow as tf
from composite import tf_op
from composite.binding import native

def mapped():
    maps = open("/proc/self/maps").read()
    return [name for name in ("libtvm_ffi", "libtvm_runtime", "libtvm_compiler") if name in maps]

kernels, program = sys.argv[1:]
print(tf_op.Module(kernels)["addone"](tf.ones([2])).numpy().tolist(), mapped())
try:
    tf_op.Module(kernels)["addone"](tf.ones([2], tf.int32))
except tf.errors.InvalidArgumentError as error:
    print("Mismatched A.dtype" in str(error))
ctypes.CDLL(str(native.library_path()), ctypes.RTLD_GLOBAL)  # as of a program that links it
try:
    tf_op.Module(program)["refused"](tf.ones([3]))
except tf.errors.InvalidArgumentError as error:
    print("expected 4" in str(error))
layer = tf_op.Module(program)["main"]
print(layer(tf.ones([1, 4]), tf.ones([4, 5])).numpy().tolist(), mapped(), "tvm" in sys.modules)
try:
    tf_op.Module(kernels)["addone"](tf.ones([2], tf.int32))
except tf.errors.InvalidArgumentError as error:
    print("Mismatched A.dtype" in str(error))
"""
    done = run_python(code, str(libraries.kernels()), str(libraries.program()))
    assert done.stdout.splitlines() == [
        "[2.0, 2.0] []",
        "True",
        "True",
        "[[4.0, 4.0, 4.0, 4.0, 4.0]] ['libtvm_ffi', 'libtvm_runtime'] False",
        "True",
    ]


def test_a_program_without_tvm_says_what_it_needs(run_python: Any) -> None:
    code = """
import importlib.util, sys
import tensorflow as tf
from composite import tf_op

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name.startswith("tvm") else find(name, *a)
try:
    tf_op.Module(sys.argv[1])
except tf.errors.FailedPreconditionError as error:
    print(error.message)
"""
    done = run_python(code, str(libraries.program()))
    assert "needs libtvm_ffi.so of TVM, which is not installed here" in done.stdout


def test_the_library_in_tvm_keeps_its_own_host(kernels: tf_op.Module) -> None:
    """TVM and TensorFlow each call their copy, on their own threads, with their own errors."""
    import tvm

    theirs = tvm.runtime.load_module(str(libraries.kernels()))
    x = np.random.default_rng(0).normal(size=[300, 64]).astype(np.float32)
    y = tvm.runtime.tensor(np.zeros_like(x))
    theirs["parallel"](tvm.runtime.tensor(x), y)
    np.testing.assert_array_equal(y.numpy(), kernels["parallel"](x))
    with pytest.raises(ValueError, match="Mismatched"):
        theirs["addone"](tvm.runtime.tensor(x[0]), tvm.runtime.tensor(x[1][:3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Mismatched"):
        kernels.func("addone", output_shape=[3])(x[0])


def test_errors_are_ours_where_tvm_was_mapped_first(run_python: Any) -> None:
    code = """
import sys
import tvm  # its libraries have the function by which kernels tell errors, for all to see
import tensorflow as tf
from composite import tf_op

addone = tf_op.Module(sys.argv[1])["addone"]
try:
    addone(tf.constant([1, 2]))
except tf.errors.InvalidArgumentError as error:
    print("Mismatched" in error.message)
"""
    done = run_python(code, str(libraries.kernels()))
    assert done.stdout == "True\n"


@pytest.mark.slow
def test_tvms_runtime_has_threads_of_its_own(run_python: Any) -> None:
    """TVM_NUM_THREADS bounds them; a library of kernels alone starts none."""
    code = """
import os, sys
import numpy as np
import tensorflow as tf
import tvm
from composite import tf_op

def threads():
    return len(os.listdir("/proc/self/task"))

x = tf.ones([500, 64])
ours, theirs = tf_op.Module(sys.argv[1]), tf_op.Module(tvm.runtime.load_module(sys.argv[1]))
y = ours["parallel"](x)
before = threads()
np.testing.assert_array_equal(ours["parallel"](x), y)
kernels = threads() - before
np.testing.assert_array_equal(theirs.func("parallel")(x), y)
print(kernels, threads() - before)
"""
    for count in (1, 3):
        env = {"TVM_NUM_THREADS": str(count)}
        done = run_python(code, str(libraries.kernels()), env=env, intra=2)
        assert done.stdout.split() == ["0", str(count - 1)]


@pytest.mark.slow
def test_clusters_that_tensorflow_forms_leave_functions_outside(run_python: Any) -> None:
    code = """
import sys
import tensorflow as tf
from composite import tf_op

addone = tf_op.Module(sys.argv[1])["addone"]

@tf.function
def around(x):
    return tf.tanh(addone(tf.exp(x) * 2.0) + 1.0) * 3.0

x = tf.constant([0.5, -1.0])
want = tf.tanh(tf.exp(x) * 2.0 + 2.0) * 3.0
tf.debugging.assert_near(around(x), want, rtol=1e-5)
print("done")
"""
    flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
    done = run_python(code, str(libraries.kernels()), env={"TF_XLA_FLAGS": flags})
    assert done.stdout == "done\n"


@pytest.mark.slow
def test_graphs_are_read_and_saved_where_the_library_is_not_loaded(
    kernels: tf_op.Module, tmp_path: Path, run_python: Any
) -> None:
    model: Any = tf.Module()
    model.call = tf.function(kernels["addone"], input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(model, str(tmp_path / "model"))
    code = """
import sys
import tensorflow as tf
import composite
from composite import tf_op
from tensorflow.python.framework import op_def_registry

model, again, library = sys.argv[1:]
loaded = composite.binding.native.library() and tf.saved_model.load(model)
graph = loaded.call.get_concrete_function().graph.as_graph_def()
print([n.attr["function"].s.decode().partition(":")[2] for f in graph.library.function
       for n in f.node_def if n.op == "CompositeTvmCall"])
print(loaded.call.get_concrete_function().structured_outputs.shape)
tf.saved_model.save(loaded, again)
for name in tf_op.Module(library).functions:
    tf_op.Module(library).func(name, output_dtype="float32", output_shape=[2])
print(tf.saved_model.load(again).call(tf.ones([2])).numpy().tolist())
print([name for name in tf_op.Module(library).functions if op_def_registry.get(name)])
"""
    folders = str(tmp_path / "model"), str(tmp_path / "again")
    lines = run_python(code, *folders, str(libraries.kernels())).stdout.splitlines()
    assert lines == ["['addone']", "(None,)", "[2.0, 2.0]", "[]"]
