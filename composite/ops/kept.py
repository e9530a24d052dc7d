"""Kernels of nodes that live as long as somebody holds them.

TensorFlow keeps the kernel of each eager op, with the functions that it has instantiated, until the
process ends: one for each value of an attribute, such as the name of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.binding import native
from composite.binding.records import NodeDef
from composite.ops import call


def keep(
    node: Any, taken: Sequence[int], made: Sequence[int]
) -> Callable[[Sequence[Any]], list[Any]]:
    """Makes the kernel of a NodeDef on the CPU: a function of its input tensors, to its outputs.

    Nothing is recorded for gradients. `taken`, `made`: the dtypes of inputs and outputs, as enums.

    Raises OpError if there is no such kernel; so does a call if the kernel does.
    """
    native.library()  # has the ops
    own = NodeDef()
    own.CopyFrom(node)
    own.input[:] = [f"x{i}" for i in range(len(taken))]
    with tf.device("CPU:0"):
        (kernel,) = call.eager_op("CompositeKeep", 1, [tf.constant(own.SerializeToString())], ())
    attrs = ("Targs", list(taken), "Tresults", list(made))

    def run(inputs: Sequence[Any]) -> list[Any]:
        return call.eager_op("CompositeRunKept", len(made), [kernel, *inputs], attrs)

    return run
