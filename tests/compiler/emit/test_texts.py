"""What a build writes, held against golden files and put to use."""

import ast
import dataclasses
import inspect
import json
import shutil
import subprocess

import pytest
from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2, tensor_pb2

from composite.compiler.emit import literals
from composite.compiler.emit.docs import docs
from composite.compiler.emit.library import LibraryKernel, LibraryOp
from composite.compiler.emit.registration import registration
from composite.compiler.emit.stubs import stubs
from composite.compiler.emit.timings import KernelTiming, read, timings
from composite.compiler.emit.wrapper import docstring, wrapper
from composite.compiler.schema import OpSchema

_DENSE = """
name: "FusedFullyConnected"
input_arg { name: "input_" type_attr: "T" }
input_arg { name: "filter_" type_attr: "T" }
output_arg { name: "o" type_attr: "T" }
attr { name: "T" type: "type" allowed_values { list { type: DT_FLOAT type: DT_DOUBLE } } }
attr { name: "act" type: "string" default_value { s: "" }
       allowed_values { list { s: "" s: "RELU" } } }
"""
_LISTS = """
name: "Lists"
input_arg { name: "xs" type_attr: "T" number_attr: "N" }
output_arg { name: "ys" type_attr: "T" number_attr: "N" }
output_arg { name: "count" type: DT_INT32 }
attr { name: "N" type: "int" has_minimum: true minimum: 1 }
attr { name: "T" type: "type" }
attr { name: "to" type: "type" default_value { type: DT_HALF } }
attr { name: "sizes" type: "list(int)" default_value { list { i: 1 i: 2 } } }
attr { name: "shape" type: "shape" default_value { shape { dim { size: 2 } dim { size: -1 } } } }
attr { name: "scale" type: "float" }
"""


def _schema(text):
    return OpSchema.from_op_def(text_format.Parse(text, op_def_pb2.OpDef()))


OPS = [
    LibraryOp(
        python_name="dense",
        schema=_schema(_DENSE),
        doc='Dense layer: act(x @ "w"ᵀ).\n\nSecond \\ paragraph.',
        digest="0123abcd",
        program=bytes(range(50)),
        mlir="module {}\n",
    ),
    LibraryOp(
        python_name="lists",
        schema=_schema(_LISTS),
        doc="",
        digest="4567",
        program=b"second",
        mlir="module {}\n",
        own_gradient=True,
    ),
]
KERNELS = [
    LibraryKernel(
        name="FusedFullyConnected_12ab",
        op_name="FusedFullyConnected",
        record=b"record",
        facts={"shapes": "s0x64, 32x64", "error": "2e-7 |y|"},
        packed=2,
    )
]


def test_wrapper(golden):
    text = wrapper("test_ops", OPS)
    golden(text, "test_ops.py.txt")
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    assert [f.name for f in functions] == ["dense", "lists"]
    assert ast.get_docstring(functions[0]) == OPS[0].doc


def test_stubs(golden):
    text = stubs("test_ops", OPS)
    golden(text, "test_ops.pyi.txt")
    ast.parse(text)


def test_docs(golden):
    golden(docs("test_ops", OPS, KERNELS), "test_ops.md")


def test_docs_say_whose_place_a_composition_takes():
    plain = dataclasses.replace(OPS[0], composes="MatMul")
    assert "A composition of TensorFlow's `MatMul`, which keeps its own" in docs("x", [plain], [])
    taking = dataclasses.replace(plain, replaces=True)
    assert "`MatMul`, and runs in its place." in docs("x", [taking], [])


def test_registration(golden):
    golden(registration("test_ops", OPS, KERNELS), "test_ops.c.txt")


@pytest.mark.parametrize(
    "doc", ['"', 'ends with "', '"""', "\\", "a\n\n    b\n", "\\n", "ends with \\"]
)
def test_docstrings_survive(doc):
    scope: dict = {}
    exec(f"def f():\n    {docstring(doc)}\n", scope)
    assert inspect.getdoc(scope["f"]) == inspect.cleandoc(doc)


def test_the_literal_of_a_tensor_is_its_proto_s_text():
    proto = tensor_pb2.TensorProto(dtype=1, float_val=[1.5, -2])
    text = ast.literal_eval(literals.literal(proto))
    assert text_format.Parse(text, tensor_pb2.TensorProto()) == proto


def test_a_default_without_a_literal_is_an_error():
    with pytest.raises(ValueError, match="no Python literal"):
        literals.literal(object())


_HOST = """
#include <stdio.h>
#include <stddef.h>
#include <string.h>
typedef struct {
  const char* record;
  size_t size;
  void* function;
  void* const* packers;
} composite_kernel;
int __tvm_ffi_FusedFullyConnected_12ab(void* a, const void* b, int c, void* d) { return 0; }
int __tvm_ffi_FusedFullyConnected_12ab_pack0(void* a, const void* b, int c, void* d) { return 1; }
int __tvm_ffi_FusedFullyConnected_12ab_pack1(void* a, const void* b, int c, void* d) { return 2; }
int composite_register_ops(const char* program, size_t size, const composite_kernel* kernels,
                           size_t count, char* error, size_t error_size) {
  printf("program of %zu, %zu kernels", size, count);
  if (count) {
    printf(", %.*s", (int)kernels[0].size, kernels[0].record);
    if (kernels[0].function == (void*)&__tvm_ffi_FusedFullyConnected_12ab &&
        kernels[0].packers[0] == (void*)&__tvm_ffi_FusedFullyConnected_12ab_pack0 &&
        kernels[0].packers[1] == (void*)&__tvm_ffi_FusedFullyConnected_12ab_pack1)
      printf(" with what packs");
  }
  puts("");
  snprintf(error, error_size, "refused");
  return FAIL && size == 6;
}
void composite_register_timings(const composite_kernel* kernel, const char* timings) {
  printf("timings of %.*s: %zu\\n", (int)kernel->size, kernel->record,
         timings ? strlen(timings) : 0);
}
void composite_bind_slots(void** launch, void** barrier, void** alloc, void** release) {
  printf("slots %d%d%d%d\\n", !!launch, !!barrier, !!alloc, !!release);
}
#ifdef LAUNCH
__attribute__((weak)) void* __TVMBackendParallelLaunch;
#endif
const char* composite_library_test_ops_status(void);
const char* composite_library_test_ops_program(size_t, size_t*);
int main(void) {
  size_t size = 0;
  printf("status '%s'\\n", composite_library_test_ops_status());
  composite_library_test_ops_program(1, &size);
  printf("second program of %zu, third %s\\n", size,
         composite_library_test_ops_program(2, &size) ? "there" : "none");
}
"""


TIMING = KernelTiming(
    asked=32,
    sizes=[8, 32, 512],
    kernel_times=[1.0, 2.00049, 90.0],
    expansion_times=[3.0, 2.5, 40.0],
    kernel_wins=[True, True, False],
)


def test_timings_come_back():
    text = timings("m", {"k": TIMING})
    line = json.loads(text)["kernels"]["k"]
    assert (line["verdict"], line["kernel_us"], line["expansion_us"]) == ("kernel", 2.0, 2.5)
    rounded = dataclasses.replace(TIMING, kernel_times=[1.0, 2.0, 90.0])
    assert read(text, "m") == {"k": rounded}
    assert read(text, "another machine") == {}
    for damaged in ("", "[]", text[:-9], text.replace("[8, 32, 512]", "[8, 32]")):
        assert read(damaged, "m") == {}


@pytest.mark.parametrize("measured", [True, False])
def test_the_registration_runs(tmp_path, measured):
    compiler = shutil.which("cc")
    assert compiler, "the tests need a C compiler: apt install gcc"
    (tmp_path / "registration.c").write_text(registration("test_ops", OPS, KERNELS))
    (tmp_path / "host.c").write_text(_HOST)
    text = timings("m", {KERNELS[0].name: TIMING, "other": TIMING})
    if measured:
        (tmp_path / "timings.json").write_text(text)
    flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-DFAIL=0", "-DLAUNCH"]
    command = [compiler, *flags, "registration.c", "host.c", "-o", "host", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "host"], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == [
        "slots 1000",
        "program of 50, 1 kernels, record with what packs",
        f"timings of record: {len(text) if measured else 0}",
        "program of 6, 0 kernels",
        "status ''",
        "second program of 6, third none",
    ]


def test_a_refused_registration_is_told(tmp_path):
    (tmp_path / "registration.c").write_text(registration("test_ops", OPS, KERNELS))
    (tmp_path / "host.c").write_text(_HOST)
    command = ["cc", "-DFAIL=1", "registration.c", "host.c", "-o", "host", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "host"], capture_output=True, text=True, check=True).stdout
    assert "status 'Lists: refused'" in out
