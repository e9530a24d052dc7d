"""Libraries of TVM for tests, compiled once for all that ask: kernels, and a program of Relax."""

# TVM's scripts are written so: R.Tensor(...) is no type to mypy, nor `main` a method.
# mypy: disable-error-code="valid-type"

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def elementwise(name: str, shape: Any, dtype: str, function: Any) -> Any:
    from tvm import te

    a = te.placeholder(shape, dtype, name="A")
    b = te.compute(shape, lambda *i: function(a(*i)), name="B")
    return te.create_prim_func([a, b]).with_attr("global_symbol", name)


def sum_of(several: list[Any], name: str) -> Any:
    from tvm import te

    first, *others = several
    total = lambda i: functools.reduce(lambda s, x: s + x[i], others, first[i])  # noqa: E731
    return te.compute(first.shape, total, name=name)


def functions() -> dict[str, Any]:
    from tvm import te

    n, m = te.var("n"), te.var("m")
    found = {"addone": elementwise("addone", (n,), "float32", lambda x: x + 1)}
    for dtype in DTYPES:
        found[f"copy_{dtype}"] = elementwise(f"copy_{dtype}", (n,), dtype, lambda x: x)
    found["scalar"] = elementwise("scalar", (), "float32", lambda x: x + 1)
    rank8 = tuple(te.var(f"d{i}") for i in range(8))
    found["rank8"] = elementwise("rank8", rank8, "float32", lambda x: x + 1)
    a, b = (te.placeholder((n,), "float32", name=name) for name in "ab")
    total = te.compute((n,), lambda i: a[i] + b[i], name="total")
    found["vector_add"] = te.create_prim_func([a, b, total])
    rows = te.placeholder((n, m), "float32", name="rows")
    k = te.reduce_axis((0, m), "k")
    sums = te.compute((n,), lambda i: te.sum(rows[i, k], axis=k), name="sums")
    found["row_sums"] = te.create_prim_func([rows, sums])
    many = [te.placeholder((n,), "float32", name=f"x{i}") for i in range(64)]
    parts = [sum_of(many[g::16], f"y{g}") for g in range(16)]
    found["many"] = te.create_prim_func([*many, *parts])
    return {name: f.with_attr("global_symbol", name) for name, f in found.items()} | {
        "parallel": parallel()
    }


def parallel() -> Any:
    """A kernel with a parallel loop and workspace of its own, both of its host."""
    import tvm
    from tvm import te

    n = te.var("n")
    a = te.placeholder((n, 64), "float32", name="A")
    twice = te.compute((n, 64), lambda i, j: a[i, j] * 2, name="twice")
    b = te.compute((n, 64), lambda i, j: twice[i, 63 - j] + 1, name="B")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"parallel": te.create_prim_func([a, b])}))
    block = schedule.get_sblock("B", func_name="parallel")
    schedule.parallel(schedule.get_loops(block)[0])
    return schedule.mod["parallel"].with_attr("global_symbol", "parallel")


@functools.cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="composite-tvm-"))


@functools.cache
def executable() -> Any:
    import tvm

    return tvm.compile(tvm.IRModule(functions()), target=tvm.target.Target({"kind": "llvm"}))


@functools.cache
def kernels() -> Path:
    """A library of kernels."""
    path = folder() / "kernels.so"
    executable().export_library(str(path))
    return path


@functools.cache
def layers() -> Any:
    """The IRModule of a Relax program."""
    from tvm.script import ir as I
    from tvm.script import relax as R

    @I.ir_module
    class Layers:
        @R.function
        def main(
            x: R.Tensor(("n", 4), "float32"),
            w: R.Tensor((4, 5), "float32"),
        ):
            with R.dataflow():
                y = R.nn.relu(R.matmul(x, w))
                R.output(y)
            return y

        @R.function
        def pair(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                y = R.add(x, x)
                z = R.sum(x, axis=[1])
                R.output(y, z)
            return (y, z)

        @R.function
        def refused(x: R.Tensor(("n",), "float32")):
            return R.call_dps_packed("four", (x,), R.Tensor((4,), "float32"))

    made: Any = Layers
    made["four"] = elementwise("four", (4,), "float32", lambda x: x + 4)  # which takes 4 numbers
    return made


@functools.cache
def program_executable() -> Any:
    import tvm

    return tvm.compile(layers(), target=tvm.target.Target({"kind": "llvm"}))


@functools.cache
def program() -> Path:
    """A library of a Relax program: one layer, and a function of two results."""
    path = folder() / "program.so"
    program_executable().export_library(str(path))
    return path


_FOREIGN = """
#include <stdexcept>
#include <cstdint>
extern "C" {
void TVMFFIErrorSetRaisedFromCStrParts(const char*, const char**, int32_t);
int __tvm_ffi_throws(void*, const void*, int32_t, void*) { throw std::runtime_error("thrown"); }
int __tvm_ffi_throws_int(void*, const void*, int32_t, void*) { throw 3; }
int __tvm_ffi_silent(void*, const void*, int32_t, void*) { return -1; }
int __tvm_ffi_out_of_range(void*, const void*, int32_t, void*) {
  const char* parts[] = {"index ", "7"};
  TVMFFIErrorSetRaisedFromCStrParts("IndexError", parts, 2);
  return -1;
}
int __tvm_ffi_nothing(void*, const void*, int32_t, void*) { return 0; }
}
"""


@functools.cache
def foreign() -> Path:
    """A library that was compiled from C++: functions that fail in each way."""
    source = folder() / "foreign.cc"
    source.write_text(_FOREIGN, encoding="utf-8")
    path = folder() / "foreign.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    return path
