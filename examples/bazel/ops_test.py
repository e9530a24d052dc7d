"""Built libraries in a process that compiles nothing, then beside their sources."""

import sys

import numpy as np

import composite

x = np.linspace(-3, 3, 7 * 16, dtype=np.float32).reshape(7, 16)
scale, shift = np.linspace(0, 2, 16, dtype=np.float32), np.ones(16, np.float32)
scaled = x * scale + shift
gated = x / (1 + np.exp(-scaled))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_kernels():
    from examples.bazel.gen_gate import gated_shift
    from examples.bazel.gen_scale import scale_shift

    with composite.options(backend="tvm"):  # or an error: each op's kernel is in its own library
        close(scale_shift(x, scale, shift), scaled)
        close(gated_shift(x, scale, shift), gated)


def test_an_op_that_is_written_in_cpp():
    from examples.bazel.gen_parity import parity

    np.testing.assert_array_equal(parity([0, 1, 2, 3, 7]), [0, 1, 1, 0, 1])


def test_only_what_was_declared_was_imported():
    assert not {"tvm", "torch_mlir"}.intersection(sys.modules)
    assert "ops_test.runfiles" in composite.__file__, composite.__file__


def test_sources_are_the_same_ops():
    from examples.bazel.gate_ops import gated_shift
    from examples.bazel.gen_gate import library

    assert gated_shift.digest == library.gated_shift.digest
    close(gated_shift.python_function(x, scale, shift), gated)


if __name__ == "__main__":
    test_kernels()
    test_an_op_that_is_written_in_cpp()
    test_only_what_was_declared_was_imported()
    test_sources_are_the_same_ops()
