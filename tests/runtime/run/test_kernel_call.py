"""One call of a compiled kernel: what it is given, what comes back, what happens when it raises.

Runs a second time at intra = inter = 1 thread: see test_process.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")

SHAPES = [(-1, -2), (-2, -3), (-3,)]  # of a dense layer's inputs
DTYPES = [tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int32, tf.int64, tf.uint8]


@pytest.fixture
def dense(unique: Callable[[str], str]) -> tuple[str, str]:
    op = unique("RtCall")
    return op, k.register(k.dense(op))


def test_inputs_are_not_copied(unique: Callable[[str], str], tmp_path: Path) -> None:
    """The kernel writes where its input lies."""
    op = unique("RtPointer")
    digest = k.register(k.twice(op))
    source = "KERNEL(NAME) { *(int64_t*)ARG(1)->data = (int64_t)ARG(0)->data; return 0; }"
    path = k.build(tmp_path, "k_pointer", source)
    k.request(
        "composite_install", k.record("k_pointer", op, digest, [(1,)], ["1"], path, T=tf.int64)
    )
    x = tf.constant([5], tf.int64)
    address = np.asarray(memoryview(x)).__array_interface__["data"][0]  # x.numpy() is a copy
    assert int(k.call(op, {"x": x}, T=tf.int64)[0]) == address


@pytest.mark.parametrize("forwards", [True, False])
def test_an_output_lies_in_an_input_that_nobody_else_needs(
    unique: Callable[[str], str], tmp_path: Path, forwards: bool
) -> None:
    """The kernel writes whether it is so."""
    op = unique("RtInPlace")
    digest = k.register(k.twice(op))
    path = k.build(
        tmp_path, "k_in_place",
        "KERNEL(NAME) { FLOATS(1)[0] = ARG(0)->data == ARG(1)->data; return 0; }",
    )  # fmt: skip
    fields = {"_forward_inputs": [0], "_forward_outputs": [0]} if forwards else {}
    record = k.record("k_in_place", op, digest, [(1,)], ["1"], path, T=tf.float32, **fields)
    k.request("composite_install", record)

    @tf.function(autograph=False)
    def alone(x: tf.Tensor) -> tf.Tensor:
        return k.call(op, {"x": tf.sqrt(x)}, _composite_program=digest)

    @tf.function(autograph=False)
    def needed(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        root = tf.sqrt(x)
        return k.call(op, {"x": root}, _composite_program=digest), root

    x = tf.constant([4.0])
    assert bool(alone(x)[0]) == forwards
    told, root = needed(x)
    assert (float(told[0]), float(root[0])) == (0.0, 2.0)


def test_a_constant_that_is_packed_is_a_copy(dense: tuple[str, str], tmp_path: Path) -> None:
    """Counted each time that it is made, which is once while the constant stays where it is."""
    op, digest = dense
    source = (
        "int __tvm_ffi_NAME_pack0(void* self, const Any* args, int32_t count, Any* result) {"
        "  memcpy(ARG(1)->data, ARG(0)->data, 4 * ARG(1)->shape[0]); return 0; }"
        "KERNEL(NAME) { memcpy(ARG(3)->data, ARG(4)->data, 4 * ARG(4)->shape[0]); return 0; }"
    )
    path = k.build(tmp_path, "k_packing", source)
    packed = {
        "_composite_constants": [1],
        "_packed_sources": [1],
        "_packed_elements": [20],
        "_packed_dtypes": [tf.float32],
    }
    shapes = [(4, 4), (4, 5), (5,)]
    k.request(
        "composite_install", k.record("k_packing", op, digest, shapes, ["4,5"], path, **packed)
    )
    stamps = {"_composite_program": digest, "_composite_constants": [1]}
    node = tf.function(
        lambda x, w, b: k.call(op, {"x": x, "w": w, "b": b}, **stamps), autograph=False
    )
    first, second = (k.dense_inputs(4, 4, 5, seed=seed) for seed in (0, 1))
    copies = []
    for inputs in (first, first, second):
        before = k.stats()["copies"]
        np.testing.assert_array_equal(node(**inputs), inputs["w"])
        copies.append(k.stats()["copies"] - before)
    assert copies == [1, 0, 1]


def test_scalars(unique: Callable[[str], str], tmp_path: Path) -> None:
    op = unique("RtScalar")
    digest = k.register(k.twice(op))
    x = tf.constant(1.5)
    result = k.call(op, {"x": x}, T=tf.float32)
    assert result.shape == ()
    assert float(result) == 3
    path = k.build(
        tmp_path,
        "k_scalar",
        "KERNEL(NAME) { if (ARG(0)->ndim) return -1; FLOATS(1)[0] = 7; return 0; }",
    )
    k.request("composite_install", k.record("k_scalar", op, digest, [()], [""], path, T=tf.float32))
    result = k.call(op, {"x": x}, T=tf.float32)
    assert result.shape == ()
    assert float(result) == 7


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype.name))
def test_dtypes_reach_the_kernel(
    unique: Callable[[str], str], tmp_path: Path, dtype: tf.DType
) -> None:
    """DLPack's code and bits of each dtype; kernels of one dtype serve no other."""
    op = unique("RtDtype")
    digest = k.register(k.twice(op))
    code = 4 if dtype == tf.bfloat16 else 2 if dtype.is_floating else 1 if dtype.is_unsigned else 0
    source = f"""KERNEL(NAME) {{
        if (ARG(0)->code != {code} || ARG(0)->bits != {8 * dtype.size} || ARG(0)->lanes != 1)
          return raise_error("TypeError", "another dtype");
        memset(ARG(1)->data, 0, {2 * dtype.size});
        return 0;
    }}"""
    path = k.build(tmp_path, "k_dtype", source)
    k.request("composite_install", k.record("k_dtype", op, digest, [(2,)], ["2"], path, T=dtype))
    ones = tf.cast([1, 1], dtype)
    assert k.call(op, {"x": ones}, T=dtype).numpy().tolist() == [0, 0]
    other = tf.int16
    assert k.call(op, {"x": tf.cast([1, 1], other)}, T=other).numpy().tolist() == [2, 2]


def test_strings_have_no_kernel(unique: Callable[[str], str]) -> None:
    op = unique("RtString")
    k.register(k.twice(op, "Add"))
    x = tf.constant(["a", "b"])
    assert k.call(op, {"x": x}, T=tf.string).numpy().tolist() == [b"aa", b"bb"]
    with k.options("tvm"), pytest.raises(tf.errors.FailedPreconditionError, match="dtypes"):
        k.call(op, {"x": x}, T=tf.string)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("ValueError", tf.errors.InvalidArgumentError),
        ("TypeError", tf.errors.InvalidArgumentError),
        ("RuntimeError", tf.errors.InternalError),
    ],
)
def test_kernel_that_raises(
    dense: tuple[str, str],
    tmp_path: Path,
    kind: str,
    error: type[Exception],
) -> None:
    op, digest = dense
    source = f'KERNEL(NAME) {{ return raise_error("{kind}", "the moon is full"); }}'
    path = k.build(tmp_path, "k_raise", source)
    k.request("composite_install", k.record("k_raise", op, digest, SHAPES, ["s0,s2"], path))
    before = k.stats()["kernel_errors"]
    traced = tf.function(lambda x, w, b: k.call(op, {"x": x, "w": w, "b": b}))
    for run in (lambda inputs: k.call(op, inputs), lambda inputs: traced(**inputs)):
        with pytest.raises(error, match=f"k_raise.*{kind}: the moon is full"):
            run(k.dense_inputs(4))
    assert k.stats()["kernel_errors"] - before == 2
    inputs = k.dense_inputs(4)
    with k.options("tf"):
        np.testing.assert_array_equal(k.call(op, inputs), k.dense_reference(**inputs))


def test_error_in_a_task_of_another_thread(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    source = """
    static int part(int task, Env* env, void* data) {
      return task == env->num_task - 1 ? raise_error("ValueError", "the last task") : 0;
    }
    int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int);
    KERNEL(NAME) { return __TVMBackendParallelLaunch(part, 0, 0); }
    """
    path = k.build(tmp_path, "k_task", source)
    k.request("composite_install", k.record("k_task", op, digest, SHAPES, ["s0,s2"], path))
    for _ in range(20):
        with pytest.raises(tf.errors.InvalidArgumentError, match="the last task"):
            k.call(op, k.dense_inputs(4))


def test_workspace(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    source = """
    void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
    int (*__TVMBackendFreeWorkspace)(int, int, void*);
    KERNEL(NAME) {
      int64_t m = ARG(0)->shape[0], n = ARG(1)->shape[1];
      float* block = __TVMBackendAllocWorkspace(1, 0, 4 * m * n, 2, 32);
      if (!block || (uintptr_t)block % 64) return raise_error("RuntimeError", "no workspace");
      for (int64_t i = 0; i < m * n; ++i) block[i] = i;
      memcpy(ARG(3)->data, block, 4 * m * n);
      return __TVMBackendFreeWorkspace(1, 0, block);
    }
    """
    path = k.build(tmp_path, "k_work", source)
    k.request("composite_install", k.record("k_work", op, digest, SHAPES, ["s0,s2"], path))
    result = k.call(op, k.dense_inputs(100, 3, 50))
    np.testing.assert_array_equal(result, np.arange(5000).reshape(100, 50))


def test_without_memory_for_workspace_the_expansion_runs(
    dense: tuple[str, str], tmp_path: Path
) -> None:
    op, digest = dense
    source = """
    void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
    KERNEL(NAME) {
      return __TVMBackendAllocWorkspace(1, 0, (uint64_t)1 << 60, 2, 32) == 0 ? -1 : 0;
    }
    """
    path = k.build(tmp_path, "k_large", source)
    k.request("composite_install", k.record("k_large", op, digest, SHAPES, ["s0,s2"], path))
    inputs = k.dense_inputs(4)
    function = k.graph_function(op)
    before = k.stats()
    for _ in range(3):
        np.testing.assert_allclose(
            function(*inputs.values()), k.dense_reference(**inputs), rtol=1e-5
        )
    after = k.stats()
    assert after["expansion_runs"] - before["expansion_runs"] == 3
    refused = pytest.raises(tf.errors.ResourceExhaustedError, match="no memory for 115292150")
    with k.options(backend="tvm"), refused:
        k.call(op, inputs)


def test_output_shapes_are_computed(unique: Callable[[str], str], tmp_path: Path) -> None:
    op = unique("RtShapes")
    digest = k.register(k.twice(op))
    source = "KERNEL(NAME) { memset(ARG(1)->data, 0, 4 * ARG(1)->shape[0]); return 0; }"
    path = k.build(tmp_path, "k_shapes", source)
    for text, m, n, expected in [
        ("s0 s1 *", 3, 4, [12]),
        ("s0 2 // s1 +", 7, 4, [7]),
        ("s0 s1 %,s0 s1 -", 9, 4, [1, 5]),
        ("10", 1, 1, [10]),
    ]:
        name = "k_shapes"
        k.request(
            "composite_install",
            k.record(name, op, digest, [(-1, -2)], [text], path, T=tf.float32),
        )
        assert k.call(op, {"x": tf.zeros([m, n])}, T=tf.float32).shape == expected
    for text in ("s0 s1 -", "s0 s1 s1 - //"):
        k.request(
            "composite_install",
            k.record("k_shapes", op, digest, [(-1, -2)], [text], path, T=tf.float32),
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="a dim of an output"):
            k.call(op, {"x": tf.zeros([1, 4])}, T=tf.float32)
