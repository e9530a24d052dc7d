"""The check of a kernel against the expansion, on kernels that are right and on wrong ones."""

import functools
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.binding import native
from composite.compiler import tvm as backend
from composite.kernels import verify
from composite.reference import adversarial
from composite.reference.tolerance import Reference


def library_of(function, *specs):
    concrete = tf.function(function, input_signature=specs, autograph=False)
    return FunctionDefLibrary(function=[concrete.get_concrete_function().function_def])


def dense(x, w, b):
    product = tf.raw_ops.MatMul(a=x, b=w, transpose_b=True)
    return tf.raw_ops.Relu(features=tf.raw_ops.BiasAdd(value=product, bias=b))


CASES = [[(33, 64), (32, 64), (32,)], [(7, 64), (32, 64), (32,)]]


def expansion(shapes):
    return library_of(dense, *map(tf.TensorSpec, shapes))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernel") / "kernel.so"
    compiled = backend.compile(expansion(CASES[0]), [("s0", 64), (32, 64), (32,)], name="k_verify")
    backend.link(compiled, path, runtime=native.library_path())
    return path


def test_a_right_kernel_passes_with_its_error(kernel):
    found = verify.check(kernel, "k_verify", expansion, CASES)
    assert 1e-8 < found.error < 1e-4
    assert found.error == float(f"{found.error:.2g}")
    assert found.unit == "|y| against float64 on adversarial inputs"


def test_a_kernel_of_another_function_does_not(kernel):
    def other(shapes):
        return library_of(lambda x, w, b: dense(x, w, b * 1.001), *map(tf.TensorSpec, shapes))

    with pytest.raises(verify.Mismatch, match=r"output 0 .* is off by"):
        verify.check(kernel, "k_verify", other, CASES)


def test_a_kernel_that_refuses_its_class(kernel):
    with pytest.raises(RuntimeError, match="kernel k_verify raised "):
        verify.check(kernel, "k_verify", expansion, [[(7, 60), (32, 60), (32,)]])


_ABI = """
typedef struct { void* data; int type, id, ndim; char dtype[4]; long *shape, *strides, offset; } T;
typedef struct { int index, pad; T* tensor; } Any;
typedef struct { void* sync; int tasks; } Env;
int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int);
int (*__TVMBackendParallelBarrier)(int, Env*);
"""

_WRONG = """
int __tvm_ffi_outside(void* self, const Any* args, int n, void* result) {
  float *x = args[0].tensor->data, *y = args[1].tensor->data;
  for (long i = 0; i < args[0].tensor->shape[0] + PAST; ++i) y[i] = SCALE(x[i]);
  return 0;
}
"""


def checked(folder, computed, expansion, shapes):
    """The check of a kernel that computes one function against another."""
    compiled = backend.compile(computed(shapes), shapes, name="k_refusing")
    backend.link(compiled, folder / "kernel.so", runtime=native.library_path())
    return verify.check(folder / "kernel.so", "k_refusing", expansion, [shapes])


def test_a_kernel_may_leave_special_numbers_to_the_expansion(tmp_path):
    def top(shapes):
        return library_of(lambda x: tf.math.top_k(x, 2), tf.TensorSpec(shapes[0]))

    for width in (9, 40):  # of few and of many vectors, at any level
        assert checked(tmp_path, top, top, [(7, width)]).same_bits


def test_a_kernel_may_leave_a_result_without_elements_to_the_expansion(tmp_path):
    def gather(shapes):
        specs = [tf.TensorSpec(shapes[0]), tf.TensorSpec(shapes[1], tf.int32)]
        return library_of(tf.gather, *specs)

    checked(tmp_path, gather, gather, [(3, 0), (2, 2)])


def test_a_kernel_may_leave_places_in_rows_without_elements_to_the_expansion(tmp_path):
    def counted(shapes):
        specs = [tf.TensorSpec(shapes[0]), tf.TensorSpec(shapes[1], tf.int32)]
        return library_of(lambda x, i: tf.reduce_sum(tf.gather(x, i), -1), *specs)

    checked(tmp_path, counted, counted, [(3, 0), (2,)])


def test_a_kernel_may_leave_nans_that_the_body_makes_to_the_expansion(tmp_path):
    def top(shapes):
        def shares(x):
            x = tf.nn.relu(x)
            return tf.math.top_k(x / tf.reduce_sum(x, -1, keepdims=True), 1)[0]

        return library_of(shares, tf.TensorSpec(shapes[0]))

    assert checked(tmp_path, top, top, [(3, 2)]).unit


def test_a_kernel_may_not_leave_all_inputs_to_the_expansion(tmp_path):
    def top(shapes):
        return library_of(lambda x: tf.math.top_k(x * 0.0 / 0.0, 2)[0], tf.TensorSpec(shapes[0]))

    with pytest.raises(verify.Mismatch, match="it leaves all inputs to the expansion"):
        checked(tmp_path, top, top, [(7, 9)])


def test_a_kernel_may_not_leave_ordinary_numbers_to_the_expansion(tmp_path):
    def gather(shapes, most):
        specs = [tf.TensorSpec(shapes[0]), tf.TensorSpec(shapes[1], tf.int32)]
        return library_of(lambda x, i: tf.gather(x, tf.clip_by_value(i, 0, most)), *specs)

    told = "it leaves integers of all sizes to the expansion: .* out of range"
    with pytest.raises(verify.Mismatch, match=told):
        checked(tmp_path, lambda s: gather(s, 9), lambda s: gather(s, 1), [(3, 4), (7,)])


def test_a_kernel_may_leave_places_of_nan_to_the_expansion(tmp_path):
    """Seeds 4162 and 5058 of the corpus: the places are integers, which do not show a NaN."""

    def places(shapes):
        return library_of(
            lambda x: tf.math.top_k(tf.sqrt(x), 2).indices / 2, tf.TensorSpec(shapes[0])
        )

    assert checked(tmp_path, places, places, [(7, 9)]).unit


def linked(folder, source, *flags):
    """A kernel in C, as a library."""
    assert shutil.which("cc"), "the tests need a C compiler: apt install gcc"
    (folder / "k.c").write_text(_ABI + source)
    subprocess.run(["cc", *flags, "-shared", "-fPIC", "-o", "k.so", "k.c"], cwd=folder, check=True)
    return folder / "k.so"


def double(shapes):
    return library_of(lambda x: x * 2.0, *map(tf.TensorSpec, shapes))


@pytest.mark.parametrize(
    ("past", "scale", "message"),
    [
        ("1", "2 * (v)", "outside its output"),
        ("-1", "2 * (v)", "is off by|infinities"),
        ("0", "(v) > 1 ? 0.0f / 0.0f : 2 * (v)", "infinities or NaNs in other places"),
        ("0", "2.0001f * (v)", "is off by"),
        ("0", "2 * (v)", None),
        # Right on ordinary inputs.
        ("0", "(v) > 1e5f ? 1e5f : 2 * (v)", "mixed magnitudes, is off by"),
        ("0", "(v) != (v) ? 0 : 2 * (v)", "with a nan in input 0, has inf"),
        (
            "0",
            "(v) - (v) == 0 ? 2 * (v) : 0 * (v)",
            "with a inf in input 0, has inf",
        ),
        ("0", "2 * ((v) + 1e-12f)", "is off by"),
    ],
)
def test_what_is_found(tmp_path, past, scale, message):
    library = linked(tmp_path, _WRONG, f"-DPAST={past}", f"-DSCALE(v)=({scale})")

    def check():
        return verify.check(library, "outside", double, [[(50,)]])

    if message is None:
        assert check().error == 0
    else:
        with pytest.raises(verify.Mismatch, match=message):
            check()


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("(v) != (v) ? 0 : 2 * (v)", "special numbers, has infinities or NaNs"),
        ("2 * (v) > 1e38f ? 1e38f : 2 * (v)", "special numbers, has infinities or NaNs"),
        # A hundredth of the largest number, and less, is no excuse for the others.
        ("2 * (v) + ((v) < 1e-3f && (v) > -1e-3f ? 1e-9f : 0)", "is off by"),
        ("2 * (v)", None),
    ],
)
def test_what_is_found_in_large_inputs(tmp_path, scale, message):
    library = linked(tmp_path, _WRONG, "-DPAST=0", f"-DSCALE(v)=({scale})")

    def check():
        return verify.check(library, "outside", double, [[(70_000,)]])

    if message is None:
        assert check().error == 0
    else:
        with pytest.raises(verify.Mismatch, match=message):
            check()


_INTEGERS = """
int __tvm_ffi_integers(void* self, const Any* args, int n, void* result) {
  int *x = args[0].tensor->data, *y = args[1].tensor->data;
  for (long i = 0; i < args[0].tensor->shape[0]; ++i) y[i] = SCALE((unsigned)x[i]);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("2 * (v)", None),
        ("(v) > 9 ? 0 : 2 * (v)", "integers of all sizes, differs"),
        ("(v) + ((v) & 0x7fffffff)", "integers of all sizes, differs|of both signs, differs"),
        ("(v) == -3u ? 0 : 2 * (v)", "small integers of both signs, differs"),
    ],
)
def test_integers_are_of_all_sizes(tmp_path, scale, message):
    library = linked(tmp_path, _INTEGERS, f"-DSCALE(v)=({scale})")

    def check():
        def twice(shapes):
            return library_of(lambda x: x * 2, tf.TensorSpec(shapes[0], tf.int32))

        return verify.check(library, "integers", twice, [[(50,)]])

    if message is None:
        check()
    else:
        with pytest.raises(verify.Mismatch, match=message):
            check()


def test_integers_that_the_expansion_refuses_are_left_out(tmp_path):
    def gather(shapes):
        specs = [tf.TensorSpec(shapes[0]), tf.TensorSpec(shapes[1], tf.int32)]
        return library_of(lambda x, i: tf.raw_ops.GatherV2(params=x, indices=i, axis=0), *specs)

    shapes = [(3, 4), (7,)]
    compiled = backend.compile(gather(shapes), shapes, name="k_gather")
    path = tmp_path / "kernel.so"
    backend.link(compiled, path, runtime=native.library_path())
    assert verify.check(path, "k_gather", gather, [shapes]).same_bits


@pytest.mark.parametrize("rows", [8, 4096])
def test_some_inputs_are_equal_and_some_have_a_mean(rows):
    shape = (rows, 20)
    dtypes = [tf.float32, tf.float32, tf.int32]
    drawn = adversarial.draws(dtypes, [shape, shape, shape], 0, all_kinds=True)
    arrays = {draw.kind: draw.arrays for draw in drawn}
    assert arrays["ordinary inputs"][0][rows // 2 :].mean() > 0.5
    kind = "equal inputs" if rows == 8 else "inputs of mixed magnitudes"
    x, y, _ = arrays[kind]
    assert (x == y).mean() > 0.2
    assert (x != y).any() == (rows != 8)


# Each task scales a part of a vector that another task has copied, after a barrier.
_PARALLEL = """
static T *x, *y;
static int part(int task, Env* env, void* data) {
  long n = x->shape[0], begin = PART(task), end = PART(task + 1);
  float *from = x->data, *to = y->data;
  for (long i = begin; i < end; ++i) to[i] = from[i];
  if (MEETS) __TVMBackendParallelBarrier(task, env);
  for (long i = n - end; i < n - begin; ++i) to[i] = to[i] * SCALE;
  return 0;
}
int __tvm_ffi_parallel(void* self, const Any* args, int n, void* result) {
  x = args[0].tensor, y = args[1].tensor;
  return __TVMBackendParallelLaunch(part, 0, 0);
}
"""


@pytest.mark.parametrize(
    ("part", "meets", "scale", "message"),
    [
        ("n * (t) / env->tasks", "1", "2", None),
        # The rest of the division is nobody's.
        ("n / env->tasks * (t)", "1", "2", r"by 3 tasks, (is off|has inf)"),
        ("n * (t) / env->tasks", "task != 1", "2", "raised RuntimeError: a task ended while"),
        ("n * (t) / env->tasks", "1", "(task == 2 ? 2.0001f : 2)", "by 3 tasks, is off by"),
    ],
)
def test_what_only_several_tasks_do_wrong(tmp_path, part, meets, scale, message):
    flags = [f"-DPART(t)=({part})", f"-DMEETS=({meets})", f"-DSCALE={scale}"]
    library = linked(tmp_path, _PARALLEL, *flags)
    x = np.arange(50, dtype=np.float32)
    assert (verify.run_kernel(library, "parallel", [x], [x])[0] == 2 * x).all()

    def check():
        return verify.check(library, "parallel", double, [[(50,)]])

    if message is None:
        assert check().error == 0
    else:
        with pytest.raises((verify.Mismatch, RuntimeError), match=message):
            check()


@pytest.mark.parametrize(("scale", "exact"), [("2", True), ("(task == 2 ? 2.0000002f : 2)", False)])
def test_an_exact_kernel_has_the_same_bits_by_several_tasks(tmp_path, scale, exact):
    flags = ["-DPART(t)=(n * (t) / env->tasks)", "-DMEETS=1", f"-DSCALE={scale}"]
    library = linked(tmp_path, _PARALLEL, *flags)

    found = verify.check(library, "parallel", double, [[(50,)]])
    assert found.same_bits == exact
    assert found.error < 1e-5


def test_integers_must_be_equal(tmp_path):
    x = np.arange(6, dtype=np.int32)
    assert verify.distance("y", x, x, Reference(x, x)) == 0
    with pytest.raises(verify.Mismatch, match="differs in 1 element"):
        verify.distance("y", x, np.where(x == 3, 9, x), Reference(x, x))


def test_bfloat16_has_a_bound(tmp_path):
    y = np.ones(3, tf.bfloat16.as_numpy_dtype)
    reference = Reference(y.astype(np.float64), y)
    assert verify.distance("y", y, y, reference) == 0
    with pytest.raises(verify.Mismatch, match=r"is off by 1 of .y. at \[0\]; 0\.016 is allowed"):
        verify.distance("y", y * 2, y, reference)


def test_what_divides_by_an_integer_is_checked_without_zeros(tmp_path):
    def quotients(x, y):
        return tf.raw_ops.FloorDiv(x=x, y=y), tf.raw_ops.FloorMod(x=x, y=y)

    def wrong(x, y):  # where signs differ
        return tf.raw_ops.TruncateDiv(x=x, y=y), tf.raw_ops.FloorMod(x=x, y=y)

    shapes = [(7, 30), (30,)]
    specs = [tf.TensorSpec(shape, tf.int32) for shape in shapes]
    for function in (quotients, wrong):
        path = tmp_path / f"{function.__name__}.so"
        compiled = backend.compile(library_of(function, *specs), shapes, name="k_divides")
        backend.link(compiled, path, runtime=native.library_path())
    check = functools.partial(
        verify.check, name="k_divides", expansions=lambda _: library_of(quotients, *specs)
    )
    assert check(tmp_path / "quotients.so", cases=[shapes]).same_bits
    with pytest.raises(verify.Mismatch, match="output 0 .* differs in"):
        check(tmp_path / "wrong.so", cases=[shapes])


def test_a_milder_draw():
    mixed = np.array([0.0, -0.0, 1.0, -1.0, 4.0, -1e30, np.inf])
    draw = adversarial.Draw("mixed", [mixed, np.arange(3)]).milder()
    np.testing.assert_array_equal(draw.arrays[0], [0.0, 0.0, 1.0, -1.0, 2.0, -1e15, np.inf])
    np.testing.assert_array_equal(draw.arrays[1], np.arange(3))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_result_that_has_no_wider_reference(dtype, recwarn):
    exact = np.asarray([1.0, 6.0, np.inf], dtype)
    assert verify.distance("it", exact.copy(), exact, Reference(exact, exact)) == 0.0
    with pytest.raises(verify.Mismatch, match="infinities or NaNs in other places"):
        verify.distance("it", exact[::-1].copy(), exact, Reference(exact, exact))
    assert [str(one.message) for one in recwarn] == []
