"""What a call costs, beside the same op written by hand in C++."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import tf_op

_BY_HAND = """
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

REGISTER_OP("AddOneByHand").Input("x: float").Output("y: float")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape);

class AddOneByHand : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(tensorflow::OpKernelContext* context) override {
    const tensorflow::Tensor& x = context->input(0);
    tensorflow::Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    const float* from = x.flat<float>().data();
    float* to = y->flat<float>().data();
    for (int64_t i = 0; i < x.NumElements(); ++i) to[i] = from[i] + 1;
  }
};
REGISTER_KERNEL_BUILDER(Name("AddOneByHand").Device("CPU"), AddOneByHand);
"""
_NODES = 200


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("op")
    (folder / "op.cc").write_text(_BY_HAND, encoding="utf-8")
    flags = [*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()]
    command = ["g++", "-O2", "-w", "-shared", "-fPIC", "op.cc", "-o", "op.so", *flags]
    subprocess.run(command, cwd=folder, check=True)
    return tf.load_op_library(str(folder / "op.so")).add_one_by_hand


def ratio(
    ours: Callable[[], Any], theirs: Callable[[], Any], calls: int, clock: Callable[[], float]
) -> float:
    """How many times as long ours takes: the median of runs side by side."""

    def seconds(run: Callable[[], Any]) -> float:
        begin = clock()
        for _ in range(calls):
            run()
        return clock() - begin

    for run in (ours, theirs):
        seconds(run)
    return float(np.median([seconds(ours) / seconds(theirs) for _ in range(41)]))


@pytest.mark.timed
@pytest.mark.slow
def test_a_call_costs_what_one_by_hand_does(kernels: tf_op.Module, by_hand: Any) -> None:
    x, addone = tf.ones([8]), kernels["addone"]
    np.testing.assert_array_equal(addone(x), by_hand(x))
    eager = ratio(lambda: addone(x), lambda: by_hand(x), 200, time.thread_time)
    chains = []
    for function in (addone, by_hand):

        @tf.function
        def chain(x: Any, function: Any = function) -> Any:
            for _ in range(_NODES):
                x = function(x)
            return x

        chains.append(chain.get_concrete_function(x))
    node = ratio(lambda: chains[0](x), lambda: chains[1](x), 5, time.process_time)
    assert node <= 1.3, node
    assert eager <= 1.3, eager
