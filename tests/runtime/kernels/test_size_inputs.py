"""Scalar inputs whose values kernels take for sizes: what is asked for, how kernels are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from composite.binding.call_request import CallRequest
from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")

# The value comes in place of the scalar's shape; -1 in the results tells this from the expansion.
REPEAT_C = r"""
KERNEL(NAME) {
  if (ARG(1)->ndim != 1) return raise_error("TypeError", "expected a size");
  for (int64_t i = 0; i < ARG(1)->shape[0]; ++i) FLOATS(2)[i] = -FLOATS(0)[0];
  return 0;
}
"""


@pytest.fixture
def repeat(unique: Callable[[str], str]) -> tuple[str, str]:
    """x, a scalar, n times."""
    op = unique("RtRepeat")
    operands = ["indices", "depth", "on_value", "off_value"]
    body = [k.call_node("0", "OneHot", ["n", "n", "x", "x"], operands)]
    declaration = {"inputs": ["x: float", "n: int32"], "outputs": ["y: float"]}
    return op, k.register(k.program(op, declaration, body, {"y": "0"}))


class Compiler:
    """Asks for the value of n; then gives a kernel for the class."""

    def __init__(self, op: str, digest: str, folder: Path) -> None:
        self.op, self.digest = op, digest
        self.path = k.build(folder, "k_repeat", REPEAT_C)

    def __call__(self, asked: Any) -> tuple[Any, ...]:
        sizes = list(asked.attr["_size_inputs"].list.i)
        if not sizes:
            return "not_covered", "the value of n is needed", [1]
        shapes = k.shapes_of(asked)
        out = "s0" if shapes[1] == (-1,) else str(shapes[1][0])
        record = k.record(
            "k_repeat", self.op, self.digest, shapes, [out], self.path, _size_inputs=sizes
        )
        k.request("composite_install", record)
        return "kernel", ""


def call(op: str, n: int) -> Any:
    return k.call(op, {"x": tf.constant(2.0), "n": tf.constant(n)}).numpy().tolist()


def explained(op: str, n: Any) -> str:
    known = TensorProto() if n is None else tf.make_tensor_proto(n, tf.int32)
    asked = CallRequest(
        op=op, in_shapes=(tf.TensorShape([]),) * 2, constants=(TensorProto(), known)
    )
    return str(k.reply("composite_explain", asked.to_node_def())["reason"])


def test_the_value_is_asked_for_and_then_a_dim(repeat: tuple[str, str], tmp_path: Path) -> None:
    op, digest = repeat
    with k.Worker(Compiler(op, digest, tmp_path)) as worker:
        assert call(op, 3) == [2.0] * 3
        worker.wait()
        assert call(op, 3) == [-2.0] * 3
        assert call(op, 0) == []
        worker.wait()
        assert call(op, 5) == [2.0] * 5
        worker.wait()
        assert call(op, 5) == [-2.0] * 5
        assert call(op, 9) == [-2.0] * 9
        with pytest.raises(tf.errors.InvalidArgumentError):
            call(op, -4)
        worker.wait()
        assert "is not known or not above 0" in explained(op, None)
        assert explained(op, 7).startswith("kernel k_repeat for shapes [], = s0:")
        step = tf.function(lambda n: k.call(op, {"x": 2.0, "n": n}))
        for n in [6] * 20 + [8] * 20:  # shapes alone make no call known
            assert step(tf.constant(n)).numpy().tolist() == [-2.0] * n
    asked = [(k.shapes_of(one), list(one.attr["_hint"].list.i)) for one in worker.requests]
    assert asked == [([(), ()], []), ([(), (3,)], []), ([(), (-1,)], [5])]


def test_a_call_that_must_have_a_kernel_waits_for_both(
    repeat: tuple[str, str], tmp_path: Path
) -> None:
    op, digest = repeat
    with k.Worker(Compiler(op, digest, tmp_path)), k.options(backend="tvm"):
        assert call(op, 3) == [-2.0] * 3
        with pytest.raises(tf.errors.FailedPreconditionError, match="not above 0"):
            call(op, 0)


def test_a_value_that_is_asked_for_again_is_not_covered(repeat: tuple[str, str]) -> None:
    op, _ = repeat
    with k.Worker(lambda _: ("not_covered", "it is Sunday", [1])) as worker:
        call(op, 3)
        worker.wait()
        assert len(worker.requests) == 2
        assert "it is Sunday" in explained(op, 3)


def test_records_name_inputs_of_one_value(repeat: tuple[str, str], tmp_path: Path) -> None:
    op, digest = repeat
    path = k.build(tmp_path, "k_wrong", REPEAT_C)
    for shapes, sizes in (([(), (-1, 2)], [1]), ([(), (-1,)], [2]), ([(), ()], [1])):
        record = k.record("k_wrong", op, digest, shapes, ["2"], path, _size_inputs=sizes)
        with pytest.raises(tf.errors.InvalidArgumentError, match="_size_inputs"):
            k.request("composite_install", record)
