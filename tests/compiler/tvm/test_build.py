"""compile and link: calls, functions within, determinism, several kernels in one library."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm import Target
from tests.compiler.tvm.conftest import library_of

DETERMINISTIC = """
import hashlib
import sys
import tensorflow as tf
sys.path.insert(0, {folder!r})
from conftest import library_of
from composite.compiler import tvm as backend

def function(x, w, b):
    return tf.tanh(tf.nn.bias_add(tf.matmul(x, w, transpose_b=True), b)), tf.reduce_sum(x, 0)

specs = [tf.TensorSpec(s, tf.float32) for s in ([None, 40], [24, 40], [24])]
kernel = backend.compile(library_of(function, specs), [("s0", 40), (24, 40), (24,)], name="same")
print(hashlib.sha256(kernel.objects["same.o"]).hexdigest())
"""


def test_same_bytes_from_two_processes(run_python: Callable[..., Any]) -> None:
    code = DETERMINISTIC.format(folder=str(Path(__file__).parent))
    sums = {
        run_python(code, env={"PYTHONHASHSEED": seed}).stdout.strip().splitlines()[-1]
        for seed in ("1", "2")
    }
    assert len(sums) == 1


def test_functions_within_are_inlined(compiler: Any) -> None:
    @tf.function
    def inner(x: Any) -> Any:
        return tf.nn.relu(x) + 1.0, x * 2.0

    @tf.function
    def middle(x: Any) -> Any:
        a, b = inner(x)
        return a - b

    compiler.compare(lambda x: middle(x) + inner(x)[1], np.arange(-5, 6, dtype=np.float32))


NARROW_STORES = """
import sys
import tensorflow as tf
sys.path.insert(0, {folder!r})
from conftest import library_of
from composite.compiler import tvm as backend
from composite.compiler.tvm import Target

def step(v, x):
    return v - (tf.reduce_mean(x, 0) + tf.square(x) * 0.01)

library = library_of(step, [tf.TensorSpec((64, 64), tf.float32)] * 2)
for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
    backend.compile(library, [(64, 64)] * 2, name="step", target=Target.of(level, 2))
print("compiled")
"""


def test_narrow_stores_and_wide_loads_of_a_workspace_are_compiled(
    run_python: Callable[..., Any],
) -> None:
    """LLVM would crash: the sums are stored in vectors of 8, and loaded in vectors of 16."""
    code = NARROW_STORES.format(folder=str(Path(__file__).parent))
    assert run_python(code).stdout.splitlines()[-1] == "compiled"


def strided(x: Any, w: Any, scale: Any, offset: Any) -> Any:
    return tf.nn.silu(tf.nn.conv2d(x, w, 2, "VALID") * scale + offset)


STRIDED = ((1, 97, 97, 3), (3, 3, 3, 32), (32,), (32,))


def test_code_that_llvm_would_refuse_at_its_highest_level(compiler: Any) -> None:
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape).astype(np.float32) for shape in STRIDED]
    compiler.compare(strided, *inputs, rtol=1e-5, atol=1e-5)
    specs = [tf.TensorSpec(shape, tf.float32) for shape in STRIDED]
    backend.compile(library_of(strided, specs), STRIDED, target=Target.of("x86-64-v4", 2))


def test_kernel_says_what_it_is(compiler: Any) -> None:
    x = np.ones((3, 4), np.float32)
    kernel = compiler.compile(lambda x: (x + 1.0, tf.reshape(x, [-1])), [x], [("s0", 4)]).kernel
    assert kernel.out_shapes == ["s0,4", "s0 4 *"]
    assert kernel.minimums == [0]
    assert kernel.divisors == [1]
    assert not kernel.barriers
    assert list(kernel.objects) == [f"{kernel.name}.o"]
    assert kernel.target == backend.Target.host()


def test_what_has_no_outputs_is_not_covered() -> None:
    library = tf.compat.v1.GraphDef().library
    library.function.add().signature.name = "nothing"
    with pytest.raises(backend.NotCovered, match="nothing to compute"):
        backend.compile(library, [])


def test_endless_chain_is_not_covered(compiler: Any) -> None:
    def function(x: Any) -> Any:
        for _ in range(1500):
            x = x + 1.0
        return x

    with pytest.raises(backend.NotCovered, match="too long to be one kernel"):
        compiler.compile(function, [np.ones(3, np.float32)])


def test_argument_mistakes() -> None:
    library = tf.compat.v1.GraphDef().library
    library.function.add().signature.name = "empty"
    with pytest.raises(ValueError, match="1 shapes for the 0 inputs"):
        backend.compile(library, [(1,)])
    with pytest.raises(ValueError, match="no C identifier"):
        backend.compile(library, [], name="not a name")


def test_many_kernels_link_into_one_library(compiler: Any, tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (64, 300)).astype(np.float32)
    kernels = [
        compiler.compile(lambda x, i=i: tf.nn.relu(tf.matmul(x, x, transpose_b=True)) * i, [x])
        for i in (1.0, 2.0, 3.0)
    ]
    path = tmp_path / "many.so"
    backend.link([k.kernel for k in kernels], path, runtime=None)
    library = ctypes.CDLL(str(path))
    for loaded in kernels:
        assert getattr(library, f"__tvm_ffi_{loaded.kernel.name}")
    with pytest.raises(ValueError, match="two kernels are named"):
        backend.link([kernels[0].kernel] * 2, path, runtime=None)


def test_library_needs_the_runtime_it_is_linked_to(compiler: Any, tmp_path: Path) -> None:
    host = tmp_path / "libhost.so"
    source = tmp_path / "host.c"
    source.write_text("void TVMFFIErrorSetRaisedFromCStrParts(void) {}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(host), str(source)], check=True)
    kernel = compiler.compile(lambda x: x + 1.0, [np.ones(3, np.float32)]).kernel
    path = tmp_path / "kernel.so"
    backend.link(kernel, path, runtime=host)
    needed = subprocess.run(
        ["readelf", "-d", str(path)], check=True, capture_output=True, text=True
    ).stdout
    assert "libhost.so" in needed


def test_no_compiler_driver_is_one_clear_sentence(
    compiler: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = compiler.compile(lambda x: x + 1.0, [np.ones(3, np.float32)]).kernel
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(backend.LinkError, match=r"needs a C compiler driver .* on PATH"):
        backend.link(kernel, tmp_path / "kernel.so", runtime=None)


def test_failed_link_names_the_reason_and_leaves_the_old_file(
    compiler: Any, tmp_path: Path
) -> None:
    kernel = compiler.compile(lambda x: x + 1.0, [np.ones(3, np.float32)]).kernel
    path = tmp_path / "kernel.so"
    path.write_text("old")
    with pytest.raises(backend.LinkError, match="could not link the kernel"):
        backend.link(kernel, path, runtime=tmp_path / "missing.so")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".link-")] == []


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs binutils")
def test_a_kernel_takes_one_symbol_from_its_host(compiler: Any, tmp_path: Path) -> None:
    x = np.ones((64, 300), np.float32)
    loaded = compiler.compile(lambda x: tf.tanh(tf.matmul(x, x, transpose_b=True)), [x])
    path = tmp_path / "kernel.so"
    backend.link(loaded.kernel, path, runtime=None)
    listed = subprocess.run(["nm", "-D", "-u", str(path)], check=True, capture_output=True)
    undefined = {line.split()[-1] for line in listed.stdout.decode().splitlines()}
    own = {s for s in undefined if not s.startswith(("__cxa_finalize", "_ITM", "__gmon"))}
    assert own == {"TVMFFIErrorSetRaisedFromCStrParts"}


def test_wrong_arguments_are_refused_by_the_kernel(compiler: Any) -> None:
    x = np.ones((3, 4), np.float32)
    loaded = compiler.compile(lambda x: x + 1.0, [x])
    with pytest.raises(AssertionError, match="refused"):
        loaded([np.ones((3, 5), np.float32)], [(3, 4)], [x.dtype])
    with pytest.raises(AssertionError, match="refused"):
        loaded([x.astype(np.float64)], [(3, 4)], [x.dtype])
