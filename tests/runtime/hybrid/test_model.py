"""Modules of composite.hybrid by the C API: in a program without Python, and beside Python's."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from examples.digits import ops

ROOT = Path(__file__).resolve().parents[3]
WEIGHTS = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)


def classify(x: Any) -> Any:
    """Two kernels, of which the second takes one row or more, and a call of TensorFlow between."""
    y = tf.nn.gelu(tf.matmul(x, WEIGHTS) + 1.0)
    z = tf.math.lgamma(tf.abs(y) + 1.5)
    return tf.nn.softmax(tf.tanh(z * 2.0) + y[0])


def words(text: Any, i: Any, x: Any) -> Any:
    """Values of all kinds, of which no kernel takes any; a number that is none is an error."""
    number = tf.strings.to_number(text) + tf.math.lgamma(x)
    return {"b": tf.strings.upper(text), "a": (number, tf.complex(x, x), i[:1], x, i > 1)}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiled = hybrid.compile(classify, tf.TensorSpec([None, 16], tf.float32))
    assert compiled.report is not None
    assert (compiled.report.kernels, compiled.report.calls) == (2, 1)
    compiled.save(path := tmp_path_factory.mktemp("hybrid") / "classify.so")
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("program")
    command = ["make", "-C", str(ROOT / "examples" / "hybrid"), f"PYTHON={sys.executable}"]
    subprocess.run([*command, f"OUT={out}"], check=True, capture_output=True)
    return out / "classify"


def run(program: Path, *arguments: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], input=given, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_program_without_python(module: Path, program: Path, tmp_path: Path) -> None:
    batches = [np.random.default_rng(n).standard_normal((n, 16)).astype("f") for n in (5, 1, 3)]
    lines = [" ".join(map(repr, x.ravel().tolist())) + "\n" for x in batches]
    lines.insert(1, "\n")  # no rows
    done = run(program, module, given="".join(lines))
    assert done.returncode == 0
    assert done.stderr.startswith("classify: a dim of the call is 0, and the kernel of region ")
    for line, x in zip(done.stdout.splitlines(), batches, strict=True):
        found = np.array(line.split(), np.float32).reshape(len(x), 8)
        np.testing.assert_allclose(found, classify(x), rtol=1e-5, atol=1e-6)
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libtvm_runtime.so" in needed
    assert not [name for name in ("libtvm_compiler.so", "libpython", "torch") if name in needed]
    (tmp_path / "other.so").write_bytes(b"no library")
    for path, why in (
        (tmp_path / "other.so", f"classify: {tmp_path}/other.so is "),
        (tmp_path / "none.so", f"classify: cannot open {tmp_path}/none.so: No such file"),
    ):
        done = run(program, path)
        assert (done.returncode, done.stderr[: len(why)]) == (1, why)


@pytest.mark.slow
def test_ops_that_the_program_has_not_are_named(program: Path, tmp_path: Path) -> None:
    def dense(x: Any) -> Any:
        return ops.fused_fully_connected(x, WEIGHTS.T, tf.zeros([8]))

    specs = tf.TensorSpec([None, 16], tf.float32)
    hybrid.compile(dense, specs, deny=["FusedFullyConnected"]).save(tmp_path / "dense.so")
    done = run(program, tmp_path / "dense.so", given="1 2 3\n")
    assert done.stderr.startswith("classify: the module runs FusedFullyConnected in TensorFlow, ")


def many_calls(out: Path, *flags: str) -> Path:
    """many_calls.cc, built with the flags that `composite config` prints for these."""
    told = subprocess.run(
        [sys.executable, "-m", "composite", "config", "--cflags", "--libs", *flags],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    source = Path(__file__).with_name("many_calls.cc")
    program = out / "many_calls"
    built = ["c++", "-std=c++17", "-O1", str(source), *shlex.split(told), "-o", str(program)]
    subprocess.run(built, check=True)
    return program


def run_many(
    program: Path, module: Path, threads: int, calls: int, **environment: str
) -> tuple[int, int]:
    """How many results differ, and by how many KiB the process has grown."""
    alone = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [program, module, str(threads), str(calls)],
        env=alone | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    differ, grown = map(int, done.stdout.split())
    return differ, grown


@pytest.mark.slow
def test_several_threads_call_one_model(module: Path, tmp_path: Path) -> None:
    differ, grown = run_many(many_calls(tmp_path, "--hybrid"), module, 8, 500)
    assert differ == 0
    assert grown < 4096  # KiB, in 4,000 calls


@pytest.mark.slow
def test_a_program_may_have_its_libraries_beside_it(module: Path, tmp_path: Path) -> None:
    program = many_calls(tmp_path, "--hybrid", "--rpath", "$ORIGIN")
    folders = [Path(tf.sysconfig.get_lib()), ROOT / "composite" / "runtime"]
    folders += [package_folder(name) / "lib" for name in ("tvm", "tvm_ffi")]
    with pytest.raises(subprocess.CalledProcessError) as error:
        run_many(program, module, 1, 1)
    assert "cannot open shared object file" in error.value.stderr
    for library in (path for folder in folders for path in folder.glob("lib*.so*")):
        if "compiler" not in library.name:
            (tmp_path / library.name).symlink_to(library)
    assert run_many(program, module, 1, 1)[0] == 0


@pytest.mark.slow
def test_tvms_libraries_may_be_on_the_search_path(module: Path, tmp_path: Path) -> None:
    program = many_calls(tmp_path)  # does not link them
    with pytest.raises(subprocess.CalledProcessError) as error:
        run_many(program, module, 1, 1)
    assert "libtvm" in error.value.stderr
    folders = [str(package_folder(name) / "lib") for name in ("tvm", "tvm_ffi")]
    assert run_many(program, module, 1, 1, LD_LIBRARY_PATH=":".join(folders))[0] == 0


def package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


class Api:
    """The C APIs of the runtime and of TensorFlow."""

    def __init__(self) -> None:
        self.runtime = ctypes.CDLL(str(ROOT / "composite" / "runtime" / "libcomposite_runtime.so"))
        self.tf = ctypes.CDLL(str(Path(tf.sysconfig.get_lib()) / "libtensorflow_cc.so.2"))
        for name in ("TF_AllocateTensor", "TF_TensorData", "TF_StringGetDataPointer"):
            getattr(self.tf, name).restype = ctypes.c_void_p
        for name in ("TF_Dim", "TF_TensorByteSize", "TF_StringGetSize"):
            getattr(self.tf, name).restype = ctypes.c_int64
        self.runtime.composite_hybrid_description.restype = ctypes.c_char_p
        self.error = ctypes.create_string_buffer(4096)
        self.room = ctypes.c_size_t(len(self.error))

    def open(self, path: Path) -> tuple[Any, str]:
        model = ctypes.c_void_p()
        self.runtime.composite_open_hybrid(
            str(path).encode(), ctypes.byref(model), self.error, self.room
        )
        return model, self.error.value.decode()

    def call(self, model: Any, inputs: Sequence[Any], outputs: int) -> tuple[list[Any], str]:
        given = (ctypes.c_void_p * len(inputs))(*map(self.tensor, inputs))
        made = (ctypes.c_void_p * outputs)()
        code = self.runtime.composite_call_hybrid(
            model, given, len(inputs), made, outputs, self.error, self.room
        )
        found = [] if code else [self.array(one or 0) for one in made]
        for one in [*given, *made]:
            self.tf.TF_DeleteTensor(ctypes.c_void_p(one))
        return found, self.error.value.decode()

    def tensor(self, value: Any) -> Any:
        array = np.asarray(value)
        is_text = array.dtype.kind == "S"
        size = 24 * array.size if is_text else array.nbytes
        dtype = tf.string if is_text else tf.as_dtype(array.dtype)
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        made = self.tf.TF_AllocateTensor(
            dtype.as_datatype_enum, dims, array.ndim, ctypes.c_size_t(size)
        )
        data = self.tf.TF_TensorData(ctypes.c_void_p(made))
        if not is_text:
            ctypes.memmove(data, array.ctypes.data, size)
            return made
        for k, text in enumerate(array.ravel().tolist()):
            self.tf.TF_StringInit(ctypes.c_void_p(data + 24 * k))
            self.tf.TF_StringCopy(ctypes.c_void_p(data + 24 * k), text, ctypes.c_size_t(len(text)))
        return made

    def array(self, tensor: int) -> Any:
        held = ctypes.c_void_p(tensor)
        dims = [self.tf.TF_Dim(held, k) for k in range(self.tf.TF_NumDims(held))]
        dtype = tf.as_dtype(self.tf.TF_TensorType(held))
        data = self.tf.TF_TensorData(held)
        if dtype != tf.string:
            content = ctypes.string_at(data, self.tf.TF_TensorByteSize(held))
            return np.frombuffer(content, dtype.as_numpy_dtype).reshape(dims)
        places = [ctypes.c_void_p(data + 24 * k) for k in range(int(np.prod(dims)))]
        texts = [
            ctypes.string_at(self.tf.TF_StringGetDataPointer(p), self.tf.TF_StringGetSize(p))
            for p in places
        ]
        return np.array(texts, dtype=object).reshape(dims)


@pytest.fixture(scope="module")
def api() -> Api:
    return Api()


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module of `words`, and Python's own of it."""
    specs = [tf.TensorSpec([None], d) for d in (tf.string, tf.int64, tf.float32)]
    compiled = hybrid.compile(words, *specs)
    compiled.save(path := tmp_path_factory.mktemp("hybrid") / "words.so")
    return path, compiled


@pytest.fixture
def model(api: Api, spoken: Any) -> Iterator[Any]:
    opened, error = api.open(spoken[0])
    assert error == ""
    yield opened
    api.runtime.composite_close_hybrid(opened)


GIVEN = (np.array([b"1", b"20"]), np.array([2, 1]), np.array([0.5, 3.0], np.float32))


def test_values_of_all_kinds(api: Api, model: Any, spoken: Any) -> None:
    wanted = [np.asarray(y) for y in tf.nest.flatten(words(*map(tf.constant, GIVEN)))]
    for _ in range(2):  # the second time there is a session
        found, error = api.call(model, GIVEN, 6)
        assert error == ""
        for y, z in zip(found, wanted, strict=True):
            assert y.dtype == z.dtype
            np.testing.assert_array_equal(y, z)
    for y, z in zip(tf.nest.flatten(spoken[1](*GIVEN)), wanted, strict=True):
        np.testing.assert_array_equal(y, z)  # Python's own is as it was
    again = tf.nest.flatten(hybrid.load(spoken[0])(*GIVEN))
    np.testing.assert_array_equal(again[0], wanted[0])
    counts = api.runtime.composite_hybrid_input_count, api.runtime.composite_hybrid_output_count
    assert [count(model) for count in counts] == [3, 6]
    told = json.loads(api.runtime.composite_hybrid_description(model))
    assert told["specs"] == [["string", [None]], ["int64", [None]], ["float32", [None]]]


def test_what_is_wrong_is_an_error(api: Api, model: Any, spoken: Any, tmp_path: Path) -> None:
    text, i, x = GIVEN
    for given, outputs, why in (
        ((text, i), 6, "words takes 3 inputs, not 2"),
        (GIVEN, 1, "the model has 6 outputs, not 1"),
        ((text, i, i), 6, "input 2 of words is int64[2], the module takes float[?]"),
        ((x, i, x), 6, "input 0 of words is float[2], the module takes string[?]"),
        ((text, i, x.reshape(1, 2)), 6, "input 2 of words is float[1,2], the module takes"),
        ((text[::-1].copy(), i, x[:0]), 6, "loc=param[2], param=input_2"),
        ((np.array([b"1", b"two"]), i, x), 6, "StringToNumberOp could not correctly convert"),
    ):
        assert why in api.call(model, given, outputs)[1]
    assert api.call(model, GIVEN, 6)[1] == ""
    content = spoken[0].read_bytes()
    (tmp_path / "short.so").write_bytes(content[: len(content) // 2])
    assert "short.so is" in api.open(tmp_path / "short.so")[1]
    runtime = ROOT / "composite" / "runtime" / "libcomposite_standalone.so"
    assert "is no module that composite.hybrid wrote" in api.open(runtime)[1]
