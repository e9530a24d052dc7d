"""Built libraries without TensorFlow: which calls there are, and what the errors say."""

from __future__ import annotations

import gc
import itertools
import shutil
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.standalone.library import load

X = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    @composite.Composite(
        "StandaloneScale",
        inputs=["x: T"],
        attrs=["by: float = 2.5", "shift: int = 1"],
        derived_attrs=["T: {float, bfloat16, bool}"],
        outputs=["y: T"],
    )
    def scale(x, by, shift):
        """Multiplies, and adds."""
        return x * tf.cast(by, x.dtype) + tf.cast(shift, x.dtype)

    @composite.Composite(
        "StandaloneJoin",
        inputs=["xs: N * T", "w: T"],
        attrs=["mode: string"],
        derived_attrs=["N: int >= 1", "T: {float}"],
        outputs=["y: T", "largest: T"],
    )
    def join(xs, w, mode):
        rows = tf.concat(xs, axis=0)
        y = rows * w if mode == "MUL" else rows + w
        return y, tf.reduce_max(y, axis=1)

    @composite.Composite("StandaloneGamma", inputs=["x: float"], outputs=["y: float"])
    def gamma(x):
        return tf.math.lgamma(x)

    scale.add_signature(x=("float32", ("n", 64)))
    scale.add_signature(x=("float32", ("n", 64)), by=0.1)
    scale.add_signature(x=("bfloat16", ("n", 64)))
    join.add_signature(
        xs=[("float32", ("a", 4)), ("float32", ("b", 4))], w=("float32", (4,)), mode="MUL"
    )
    out = tmp_path_factory.mktemp("built") / "lib"
    return composite.build([scale, join, gamma], out, name="standalone_ops")


@pytest.fixture(scope="module")
def ops(folder):
    return composite.load(folder, tensorflow=False)


def scaled(x, by=2.5):
    return x * np.float32(by) + np.float32(1)


def test_no_tensorflow_in_the_process(folder, run_python):
    """Nor TVM; on several threads, and in a child of fork, which has none of them."""
    code = f"""
import os, sys
import numpy as np
import composite

ops = composite.load({str(folder)!r}, tensorflow=False)
x = np.ones((20000, 64), np.float32)
assert (ops["scale"](x) == 3.5).all()
child = os.fork()
if child == 0:
    os._exit(0 if (ops["scale"](x) == 3.5).all() else 1)
assert os.waitpid(child, 0)[1] == 0
from importlib import metadata
metadata.version = lambda name: "1.15.0"
try:
    composite.Composite
except ImportError as error:
    assert "built for TensorFlow" in str(error)
else:
    raise AssertionError("what needs TensorFlow must ask for the right one")
loaded = {{"tensorflow", "tvm", "tvm_ffi", "mlir", "google"}} & set(sys.modules)
assert not loaded, loaded
"""
    run_python(code, bare=True, env={"COMPOSITE_THREADS": "3"})


def test_calls(ops):
    assert sorted(ops) == ["gamma", "join", "scale"]
    y = ops["scale"](X)
    assert type(y) is np.ndarray
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, scaled(X), rtol=1e-6)
    np.testing.assert_array_equal(ops.scale(x=X), y)
    np.testing.assert_array_equal(ops.scale(X), y)
    assert ops.scale(np.empty((0, 64), np.float32)).shape == (0, 64)
    assert ops.scale.__doc__ == "Multiplies, and adds."


def test_attributes_are_those_that_kernels_were_built_for(ops):
    """A float has 32 bits, as in TensorFlow."""
    np.testing.assert_allclose(ops.scale(X, by=0.1), scaled(X, 0.1), rtol=1e-6)
    np.testing.assert_array_equal(ops.scale.bind(by=0.1)(X), ops.scale(X, by=0.1))


def test_lists_and_several_outputs(ops):
    a, b, w = X[:1, :4], np.ones((3, 4), np.float32), np.arange(4, dtype=np.float32)
    y, largest = ops.join([np.ascontiguousarray(a), b], w, mode="MUL")
    np.testing.assert_allclose(y, np.concatenate([a, b]) * w, rtol=1e-6)
    np.testing.assert_array_equal(largest, y.max(axis=1))


def test_bfloat16_of_numpy(ops):
    y = ops.scale(X.astype(ml_dtypes.bfloat16))
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(y.astype(np.float32), scaled(X), atol=0.03)


class Foreign:
    """An array of another library, which has NumPy's memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


class Namespaced(Foreign):
    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=lambda other: Namespaced(np.from_dlpack(other)))


def from_dlpack(other):
    """What the package of an array has, where arrays have no namespace."""
    return Foreign(np.from_dlpack(other))


@pytest.mark.parametrize("kind", [Foreign, Namespaced])
def test_arrays_of_other_libraries(ops, kind, monkeypatch):
    monkeypatch.setitem(sys.modules, kind.__module__.partition(".")[0], sys.modules[__name__])
    y = ops.scale(kind(X))
    assert type(y) is kind
    np.testing.assert_array_equal(y.array, ops.scale(X))
    mixed, largest = ops.join(
        [np.ones((1, 4), "f"), kind(np.ones((2, 4), "f"))], np.ones(4, "f"), mode="MUL"
    )
    assert type(mixed) is type(largest) is kind
    assert mixed.array.shape == (3, 4)


def on_a_gpu():
    """An array whose DLPack tensor says that it is in CUDA's memory."""
    import ctypes

    class Gpu(Foreign):
        def __dlpack__(self, **_):
            capsule = self.array.__dlpack__()
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + 8).value = 2
            return capsule

    return Gpu(X)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda ops: ops.scale(X[:, :32]),
            ValueError,
            r"float32\[2,32\].*kernels for \(float32\[s0,64",
        ),
        (lambda ops: ops.scale(X.astype("d")), ValueError, r"no kernel covers \(float64\[2,64\]\)"),
        (lambda ops: ops.scale(X.astype(">f4")), ValueError, "a dtype without a name"),
        (
            lambda ops: ops.scale(np.zeros((2, 128), "f")[:, ::2]),
            ValueError,
            "input 0 is not contig",
        ),
        (
            lambda ops: ops.scale(np.zeros(513, "b")[1:].view("f").reshape(2, 64)),
            ValueError,
            "aligned",
        ),
        (lambda ops: ops.scale(on_a_gpu()), ValueError, "input 0 is not in the CPU's memory"),
        (lambda ops: ops.scale([1.0]), TypeError, "scale: input 0 is no array"),
        (lambda ops: ops.scale(3.0), TypeError, "input 0 is no array: pass one of NumPy"),
        (lambda ops: ops.scale(), TypeError, "scale: missing a required argument: 'x'"),
        (lambda ops: ops.scale(X, X), TypeError, "scale: too many positional arguments"),
        (
            lambda ops: ops.scale(X, times=1),
            TypeError,
            "scale: got an unexpected keyword .*'times'",
        ),
        (
            lambda ops: ops.scale(X, by="a"),
            TypeError,
            r"scale has attributes \(by: float, shift: int\)",
        ),
        (
            lambda ops: ops.scale(X, by=9.0),
            LookupError,
            r'no kernel of scale .*\{"by": 9.0, "shift": 1\}',
        ),
        (
            lambda ops: ops.join.bind(),
            TypeError,
            "join: the attribute mode has no default: give it",
        ),
        (lambda ops: ops.gamma(X), LookupError, "no kernel of gamma with the attributes {}"),
        (lambda ops: ops["scales"], KeyError, "no op 'scales': scale, join, gamma"),
        (lambda ops: ops.scales, AttributeError, "no op 'scales': scale, join, gamma"),
    ],
)
def test_errors_say_what_and_where(ops, call, error, message):
    with pytest.raises(error, match=message):
        call(ops)


def test_a_folder_that_is_none_or_was_changed(folder, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"holds no built library: it has no manifest\.json"
    ):
        composite.load(tmp_path, tensorflow=False)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = copy / "libstandalone_ops_kernels.so"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="its hash differs"):
        composite.load(copy, tensorflow=False)
    file.unlink()
    with pytest.raises(FileNotFoundError, match="cannot be opened"):
        composite.load(copy, tensorflow=False)
    (copy / "manifest.json").write_text('{"format": 2}')
    with pytest.raises(
        RuntimeError, match="names no kernels for processes without TensorFlow on this CPU"
    ):
        composite.load(copy, tensorflow=False)


def test_loading_again_gives_the_same_library(folder, ops):
    assert composite.load(folder, tensorflow=False) is ops
    assert load(folder.absolute()) is ops


def test_calls_keep_nothing(ops):
    """As many references and blocks after many calls as before, failing ones among them."""
    wrong = X[:, :32]
    foreign = Namespaced(X)

    def calls(count):
        for _ in range(count):
            ops.scale(X)
            ops.scale(foreign)
            with pytest.raises(ValueError, match="no kernel"):
                ops.scale(wrong)

    def kept():
        gc.collect()
        before = sys.getallocatedblocks()
        calls(500)
        gc.collect()
        return sys.getallocatedblocks() - before

    calls(50)
    before = sys.getrefcount(X)
    # Other threads of the process may allocate, in some turns more than in others.
    assert min(kept() for _ in range(4)) < 100
    assert sys.getrefcount(X) == before


def test_the_same_kernel_serves_both_ways(folder, ops):
    """TensorFlow's ops and these are two mappings; neither takes the other's threads or memory."""
    both = composite.load(folder)
    for _ in itertools.repeat(None, 2):
        y = both.scale(tf.constant(X))
        np.testing.assert_allclose(ops.scale(X), y, rtol=1e-6)
