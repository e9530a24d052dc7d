"""Kernels that authors give: what is taken, what is refused and why, and where they run."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
import tensorflow as tf
import tvm
from tvm import te

import composite
from composite.binding import settings

CALL = {"x": ("float32", ("n", 64))}
X = np.linspace(-2, 2, 256, dtype=np.float32).reshape(4, 64)


def squares(factor, columns=64, dtype="float32"):
    """Factor * x * x, a PrimFunc of TVM."""
    rows = te.var("rows")
    x = te.placeholder((rows, columns), dtype, name="x")
    y = te.compute((rows, columns), lambda i, j: x[i, j] * x[i, j] * tvm.tirx.const(factor, dtype))
    return te.create_prim_func([x, y])


@pytest.fixture(scope="module")
def scaled():
    @composite.Composite(
        "GivenSquares",
        inputs=["x: T"],
        attrs=["by: float = 2.5"],
        derived_attrs=["T: {float, double}"],
        outputs=["y: T"],
    )
    def scaled_squares(x, by):
        return x * x * tf.cast(by, x.dtype)

    scaled_squares.use_kernel(squares(2.5), CALL)
    return scaled_squares


def test_a_function_of_tvm_runs(scaled):
    (given,) = scaled.kernels
    assert given.record.strategy.startswith("yours: GivenSquares_")
    assert given.record.out_shapes == ("s0,64",)
    with settings.options(backend="tvm"):
        np.testing.assert_allclose(scaled(X), X * X * 2.5, rtol=1e-6)
        # TensorFlow's slices lie where they lie.
        long = tf.constant(np.arange(5 * 64, dtype=np.float32))
        np.testing.assert_allclose(
            tf.function(lambda z: scaled(tf.reshape(z[1:257], [4, 64])))(long),
            scaled(tf.reshape(long[1:257], [4, 64])),
        )
    said = composite.explain(scaled, tf.TensorSpec([32, 64]))
    assert said.kernel == given.record.name
    assert "the kernel is yours: GivenSquares_" in said.reason


def test_it_is_carried_by_a_library(scaled, tmp_path):
    folder = composite.build([scaled], tmp_path / "lib", name="given_ops")
    ops = composite.load(folder, tensorflow=False)
    np.testing.assert_allclose(ops["scaled_squares"](X), X * X * 2.5, rtol=1e-6)
    assert "yours: GivenSquares_" in (folder / "manifest.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kernel", "call", "message"),
    [
        (
            squares(2.6),
            CALL,
            r"is not what the body computes: output 0 .* is off by .* it is .*, and .* is",
        ),
        (squares(2.5, 32), CALL, r"refused: .*raised"),
        (squares(2.5, 64, "float64"), CALL, "refused: .*raised"),
        (
            squares(2.5),
            CALL | {"by": 3.0},
            r"for scaled_squares\(s0x64; T=float32, by=3.0\) is ref",
        ),
        (__file__ + ".so", CALL, "function= says which function of test_given.py.so it is"),
        (tvm.IRModule({"a": squares(1), "b": squares(2)}), CALL, "which of its functions: a, b"),
    ],
)
def test_what_is_wrong_is_refused(scaled, kernel, call, message):
    kernels, signatures = list(scaled.kernels), list(scaled.signatures)
    with pytest.raises(ValueError, match=message):
        scaled.use_kernel(kernel, call)
    assert (scaled.kernels, scaled.signatures) == (kernels, signatures)


def test_a_function_of_tensors_is_compiled():
    @composite.Composite(
        "GivenSums", inputs=["x: float", "b: float"], outputs=["y: float", "s: float"]
    )
    def sums(x, b):
        return x + b, tf.reduce_sum(x, 1)

    def kernel(x, b):
        k = te.reduce_axis((0, x.shape[1]), "k")
        return [
            te.compute(x.shape, lambda i, j: x[i, j] + b[j]),
            te.compute(x.shape[:1], lambda i: te.sum(x[i, k], axis=k)),
        ]

    sums.use_kernel(kernel, {"x": ("float32", ("n", "m")), "b": ("float32", ("m",))})
    with settings.options(backend="tvm"):
        for x in (X, X[:, :0]):  # of the empty one there are sums
            y, s = sums(x, x[0])
            np.testing.assert_array_equal(y, x + x[0])
            np.testing.assert_allclose(s, x.sum(1), rtol=1e-5)
    with pytest.raises(TypeError, match="returns None, and no te tensor"):
        sums.use_kernel(lambda x, b: None, sums.signatures[0])


@pytest.fixture(scope="module")
def compiled():
    module = tvm.IRModule({"row_sums": row_sums().with_attr("global_symbol", "row_sums")})
    return tvm.compile(module, target=tvm.target.Target({"kind": "llvm"}))


def row_sums():
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m), "float32", name="x")
    k = te.reduce_axis((0, m), "k")
    return te.create_prim_func([x, te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="s")])


@pytest.mark.parametrize("form", ["executable", "module", "library"])
def test_what_tvm_compiled_is_given_tensors_that_are_aligned(compiled, form, tmp_path):
    @composite.Composite(f"GivenCompiled{form}", inputs=["x: float"], outputs=["y: float"])
    def summed(x):
        return tf.reduce_sum(x, 1)

    call = {"x": ("float32", ("n", "m"))}
    if form == "library":
        compiled.export_library(str(tmp_path / "sums.so"))
        summed.use_kernel(tmp_path / "sums.so", call, function="row_sums")
        message = "came as a shared library"
    else:
        summed.use_kernel(compiled if form == "executable" else compiled.mod, call)
        message = "assumes tensors at multiples of 64 bytes, .* give the IRModule"
    assert summed.kernels[0].record.alignment == 64
    room = np.arange(300, dtype=np.float32)
    begin = 1 + -room.ctypes.data % 64 // 4  # in front of it there is a multiple of 64
    shifted = room[begin : begin + 252].reshape(4, 63)
    with settings.options(backend="tvm"):
        before = composite.stats()
        found = summed(tf.experimental.dlpack.from_dlpack(shifted.__dlpack__()))
        np.testing.assert_allclose(found, shifted.sum(1), rtol=1e-6)
        assert (composite.stats() - before)["copies"] == 1
        np.testing.assert_array_equal(summed(tf.zeros([3, 0])), np.zeros(3))
    with pytest.raises(ValueError, match=message):
        composite.build([summed], tmp_path / "lib", name="given_compiled")


def test_what_is_no_kernel_is_an_error(scaled, compiled):
    with pytest.raises(TypeError, match="is no kernel: give the path"):
        scaled.use_kernel(3, CALL)
    with pytest.raises(TypeError, match="A packed function alone has no machine code"):
        scaled.use_kernel(compiled["row_sums"], CALL)
    with pytest.raises(ValueError, match="it leaves ordinary inputs to the expansion|raised"):
        scaled.use_kernel(compiled, {"x": ("float64", ("n", 64))})
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        scaled.use_kernel(squares(2.5), {"by": 2.5})
    with pytest.raises(ValueError, match="launches= is of a kernel for a GPU"):
        scaled.use_kernel(squares(2.5), CALL, launches=[composite.Launch("f", 1, 1)])
    with pytest.raises(TypeError, match="is no kernel for a GPU: give the path of a cubin"):
        scaled.use_kernel(squares(2.5), CALL, device="cuda:sm_90")
    with pytest.raises(FileNotFoundError, match="none.so is not there"):
        scaled.use_kernel("none.so", CALL, function="f")


C = """
#include <stdint.h>
typedef struct {
  void* data;
  int32_t device[2], ndim;
  uint8_t dtype[4];
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;
typedef struct { int32_t type; uint32_t zero; tensor* value; } any;
/* Rows of x, each twice. */
int __tvm_ffi_twice(void* self, const any* args, int32_t count, any* result) {
  const int32_t *x = args[0].value->data;
  int32_t* y = args[1].value->data;
  const int64_t rows = args[0].value->shape[0], columns = args[0].value->shape[1];
  for (int64_t i = 0; i < 2 * rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[i * columns + j] = x[i / 2 * columns + j] + ADDED;
  return 0;
}
"""


@pytest.mark.parametrize("kind", [".so", ".o"])
def test_a_function_of_c(tmp_path, kind):
    """For a body without a lowering of ours: nobody else has a kernel for it."""

    @composite.Composite("GivenTwice" + kind[1:].upper(), inputs=["x: int32"], outputs=["y: int32"])
    def twice(x):
        return tf.bitwise.invert(tf.bitwise.invert(tf.repeat(x, 2, axis=0)))

    def compiled(added):
        source = tmp_path / "twice.c"
        source.write_text(C, encoding="utf-8")
        path = tmp_path / f"twice_{added}{kind}"
        how = "-shared" if kind == ".so" else "-c"
        command = ["cc", "-O2", "-fPIC", how, f"-DADDED={added}", str(source), "-o", str(path)]
        subprocess.run(command, check=True)
        return path

    call = {"x": ("int32", ("rows", "columns"))}
    with pytest.raises(ValueError, match=r"differs in \d+ elements; at \[0, 0\] it is -?\d+, and"):
        twice.use_kernel(compiled(1), call, function="twice")
    twice.use_kernel(compiled(0), call, function="twice")
    assert twice.kernels[0].record.out_shapes == ("s0 2 *,s1",)
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    with settings.options(backend="tvm"):
        np.testing.assert_array_equal(twice(x), np.repeat(x, 2, axis=0))
    if kind == ".so":
        with pytest.raises(
            ValueError, match="came as a shared library, which cannot be built into"
        ):
            composite.build([twice], tmp_path / "lib", name="given_twice")
    else:
        folder = composite.build([twice], tmp_path / "lib", name="given_twice")
        y = composite.load(folder, tensorflow=False)["twice"](x)
        np.testing.assert_array_equal(y, np.repeat(x, 2, axis=0))


def test_shapes_that_kernels_cannot_tell_are_refused():
    @composite.Composite("GivenUnknown", inputs=["x: float"], outputs=["y: float"])
    def positive(x):
        return tf.boolean_mask(x, x > 0)

    with pytest.raises(ValueError, match="depend on more than the shapes of the inputs"):
        positive.use_kernel(squares(1), {"x": ("float32", ("n",))})
