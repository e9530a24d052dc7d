"""CUDA sources: what they are made of, and what has none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.compiler.tvm.errors import NotCovered
from tests.gpu.shim.cases import Case, written


def kernel(function: Callable[..., Any], *shapes: Any, dtype: Any = np.float32) -> CudaKernel:
    return written("k", Case(function, shapes, "", dtypes=[dtype]))


def body(made: CudaKernel) -> str:
    return made.source.removeprefix(PREAMBLE)


def test_a_function_takes_what_it_uses() -> None:
    made = kernel(lambda x, y: (x + 1.0, y * 2.0), ["s1"], ["s0", 3])
    first, second = made.plan.launches
    assert [[str(a) for a in one.arguments] for one in (first, second)] == [
        ["in0", "out0", "size1"],
        ["in1", "out1", "size0"],
    ]
    assert made.out_shapes == ["s1", "s0,3"]
    assert "k_0(float* __restrict__ in0, float* __restrict__ out0, int64_t s1)" in made.source


def test_what_is_read_by_later_launches_lies_in_a_workspace() -> None:
    made = kernel(lambda x: tf.reduce_sum(tf.tanh(x), 0) / tf.reduce_sum(x), ["s0", 64])
    assert made.plan.workspaces
    assert {a.kind for one in made.plan.launches for a in one.arguments} == {
        "in", "out", "work", "size"
    }  # fmt: skip


def test_sizes_of_nothing_have_no_launch() -> None:
    assert kernel(lambda x: x + 1.0, [0, 5]).plan.launches == ()


def test_no_function_of_cuda_is_less_exact_than_its_name() -> None:
    made = kernel(lambda x: (tf.exp(x), tf.sin(x), tf.pow(x, 2.5), 1.0 / x, tf.sqrt(x)), [64])
    assert not re.findall(r"\b__\w+f\(", body(made))  # such as __expf
    assert "sqrtf" in body(made)


def test_products_and_sums_are_fused_within_an_op_and_not_across() -> None:
    assert "fmaf" in body(kernel(tf.exp, [64]))
    assert "fmaf" not in body(kernel(lambda x, y: x * y + y, [64], [64]))


def test_equal_functions_have_equal_sources() -> None:
    sources = {kernel(tf.nn.softmax, ["s0", 40]).source for _ in range(2)}
    assert len(sources) == 1


def test_tvm_still_compiles_for_itself() -> None:
    import tvm

    before = tvm.get_global_func("tvm_callback_cuda_compile")
    kernel(lambda x: x + 1.0, [3])
    assert tvm.get_global_func("tvm_callback_cuda_compile").same_as(before)


@pytest.mark.parametrize(
    ("function", "shapes", "why"),
    [
        (
            lambda x, y: tf.nn.conv2d(x, y, 1, "SAME"),
            [[1, 8, 8, 3], [3, 3, 3, 4]],
            "no strategy writes Convolution",
        ),
        (tf.cumsum, [[4]], "no strategy writes Scan"),
    ],
)
def test_what_no_strategy_takes_has_no_kernel(function: Any, shapes: Any, why: str) -> None:
    with pytest.raises(NotCovered, match=why):
        kernel(function, *shapes)


def test_a_call_that_may_fail_has_no_kernel() -> None:
    """A divisor may be 0. An index may be out of range, but a gather gives 0 there."""
    with pytest.raises(NotCovered, match="may fail"):
        kernel(lambda x, i: x // i, [8], [8], dtype=np.int32)
    kernel(lambda x, i: tf.gather(x, tf.cast(i, tf.int32)), [8], [3])


_WRITE = """
import tensorflow as tf
import tvm
from tests.gpu.shim.cases import Case, written
print("libtvm_runtime_cuda" in open("/proc/self/maps").read())
print(written("k", Case(tf.tanh, [[64]], "")).strategy)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_sources_are_written_where_tvm_has_its_runtime_for_gpus(tmp_path: Path) -> None:
    """TVM loads it where CUDA 13 is found, and then has a callback compile what it has written."""
    import tvm

    library = next(Path(tvm.__file__).parent.rglob("libtvm_runtime_cuda.so"))
    called = {*re.findall(rb"\0(cu(?:da)?[A-Z]\w+)(?=\0)", library.read_bytes())}
    stubs = "".join(f"int {name.decode()}(void) {{ return 100; }}\n" for name in called)
    (tmp_path / "stubs.c").write_text(stubs)
    (tmp_path / "map").write_text("libcudart.so.13 { global: *; };")
    for name in ("libcudart.so.13", "libcuda.so.1"):  # of a machine without a GPU
        versions = ["-Wl,--version-script=map"] if "rt" in name else []
        named = ["-o", name, f"-Wl,-soname,{name}", *versions]
        command = ["cc", "-w", "-shared", "-fPIC", "stubs.c", *named]
        subprocess.run(command, check=True, cwd=tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _WRITE], capture_output=True, text=True, check=False,
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}, cwd=Path(__file__).parents[4],
    )  # fmt: skip
    assert done.stdout.split() == ["True", "elementwise"], done.stderr[-2000:]
