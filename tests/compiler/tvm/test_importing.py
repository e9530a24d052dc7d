"""TVM's import in two steps."""

from __future__ import annotations

from tests.conftest import RunPython

_CODE = """
import ctypes, signal, sys
from composite.compiler.tvm import importing

def handler() -> int:
    at = (ctypes.c_void_p * 64)()
    ctypes.CDLL(None).sigaction(signal.SIGSEGV, None, at)
    return at[0] or 0

assert "tvm_ffi" not in sys.modules
importing.import_core()
assert handler() != 0  # TVM's
signal.signal(signal.SIGSEGV, signal.SIG_DFL)
importing.import_compiler()
assert "tvm" in sys.modules
print(handler())
"""


def test_the_first_step_alone_installs_a_handler(run_python: RunPython) -> None:
    assert run_python(_CODE, bare=True).stdout == "0\n"


_CUDA = """
from composite.compiler.tvm import importing

importing.import_compiler()
import tvm
from composite.compiler.tvm.cuda.rules import register_rules

name = "tirx.intrinsics.cuda.get_codegen"
print(tvm.get_global_func(name, allow_missing=True) is None)
register_rules()
print(tvm.get_global_func(name, allow_missing=True) is None)
"""


def test_the_code_generator_for_gpus_is_there_once_a_kernel_needs_it(run_python: RunPython) -> None:
    assert run_python(_CUDA, bare=True).stdout == "True\nFalse\n"
