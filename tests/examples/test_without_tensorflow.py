"""examples/without_tensorflow: a library's kernels, called from NumPy and from C."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

import composite
from examples.digits import ops

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "without_tensorflow"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a kernel for the example's call."""
    call = {
        "input_": ("float32", ("batch", 64)),
        "filter_": ("float32", (10, 64)),
        "bias": ("float32", (10,)),
        "act": "RELU",
    }
    out = tmp_path_factory.mktemp("built") / "library"
    signatures = {"fused_fully_connected": [call]}
    return composite.build(
        [ops.fused_fully_connected], out, name="digits_ops", signatures=signatures
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C program."""
    out = tmp_path_factory.mktemp("call")
    command = ["make", "-C", str(FOLDER), f"PYTHON={sys.executable}", f"OUT={out}"]
    subprocess.run(command, check=True, capture_output=True)
    return out / "call"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_both_print_what_the_page_says(library: Path, program: Path) -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    expected = "".join(line + "\n" for line in re.findall(r"^    ([\d ]+)$", page, re.MULTILINE))
    for done in (
        run(program, library),
        run(sys.executable, "-m", "examples.without_tensorflow.call", library),
    ):
        assert (done.stdout, done.stderr) == (expected, "")


def test_the_program_needs_neither_tensorflow_nor_python(program: Path) -> None:
    needed = run("ldd", program).stdout
    assert "libcomposite_standalone.so" in needed
    assert "tensorflow" not in needed
    assert "python" not in needed


def test_what_is_wrong_is_one_sentence(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"call: cannot open the kernels (5): {tmp_path} holds no built library: it has no "
        "manifest.json\n"
    )


class Tensor(ctypes.Structure):
    """composite_tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


def tensor(*dims: int) -> Tensor:
    """A float32 tensor of ones."""
    data = ctypes.addressof(_ONES)
    return Tensor(data, (1, 0), len(dims), (2, 32, 1, 0), (ctypes.c_int64 * len(dims))(*dims))


_ONES = (ctypes.c_float * 1024)(*[1.0] * 1024)


def test_calls_of_c_that_do_not_fit_are_errors(library: Path) -> None:
    api = ctypes.CDLL(str(ROOT / "composite" / "runtime" / "libcomposite_standalone.so"))
    error = ctypes.create_string_buffer(1024)
    kernels, dense = ctypes.c_void_p(), ctypes.c_void_p()
    told = (error, ctypes.c_size_t(len(error)))
    assert api.composite_open_kernels(str(library).encode(), ctypes.byref(kernels), *told) == 0

    def found(op: bytes, attributes: bytes | None) -> tuple[int, str]:
        code = api.composite_find_function(kernels, op, attributes, ctypes.byref(dense), *told)
        return code, error.value.decode()

    assert 'has no op "dense": fused_fully_connected' in found(b"dense", None)[1]
    code, message = found(b"fused_fully_connected", None)
    assert code == 5
    assert 'with the attributes {"act": ""}' in message
    assert found(b"FusedFullyConnected", b'{"act": "RELU"}') == (0, "")
    assert api.composite_output_count(dense) == 1

    def called(inputs: list[Tensor], *outputs: Tensor) -> str:
        api.composite_call(
            dense, (Tensor * 3)(*inputs), len(inputs), (Tensor * 2)(*outputs), len(outputs), *told
        )
        return error.value.decode()

    fitting = [tensor(3, 64), tensor(10, 64), tensor(10)]
    assert called(fitting, tensor(3, 10)) == ""
    assert "no kernel covers (float32[3,64], float32[10,64])" in called(fitting[:2], tensor(3, 10))
    assert "output 0 is float32[3,10] in the CPU's memory, and not float32[3,9]" in called(
        fitting, tensor(3, 9)
    )
    assert "has 1 outputs, not 2" in called(fitting, tensor(3, 10), tensor(1))
    assert "has 1 outputs, not 0" in called(fitting)
