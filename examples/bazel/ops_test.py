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
    from examples.bazel import gen_gate, gen_scale

    with composite.options(backend="tvm"):  # or an error: each op's kernel is in its own library
        close(gen_scale.scale_shift(x, scale, shift), scaled)
        close(gen_gate.gated_shift(x, scale, shift), gated)


def test_an_op_that_is_written_in_cpp():
    from examples.bazel import gen_parity

    np.testing.assert_array_equal(gen_parity.parity([0, 1, 2, 3, 7]), [0, 1, 1, 0, 1])


def test_only_what_was_declared_was_imported():
    assert not {"tvm", "torch_mlir"}.intersection(sys.modules)
    assert "ops_test.runfiles" in composite.__file__, composite.__file__


def test_sources_are_the_same_ops():
    from examples.bazel import gate_ops, gen_gate

    assert gate_ops.gated_shift.digest == gen_gate.library.gated_shift.digest
    close(gate_ops.gated_shift.python_function(x, scale, shift), gated)


if __name__ == "__main__":
    test_kernels()
    test_an_op_that_is_written_in_cpp()
    test_only_what_was_declared_was_imported()
    test_sources_are_the_same_ops()
