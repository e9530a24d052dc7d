"""The `__call__` of an object whose eager calls have been prepared: an op without attributes.

Written against private APIs of TF 2.21, as compiled_call.py is; tests/composite/ops/test_call.py
pins them.

Not for: other calls (nodes, anything but eager tensors of the prepared dtypes), which the object
makes itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context, core
from tensorflow.python.framework import ops


class Prepared(NamedTuple):
    """What eager calls of an object are.

    Attributes:
        op_name: an op without attributes and lists, of one output at least.
        dtypes: of its inputs, as TensorFlow numbers them.
    """

    op_name: str
    dtypes: list[int]


def with_prepared(unprepared: Callable[..., Any]) -> Callable[..., Any]:
    """`__call__(self, *inputs, output_shape=None, name=None)`, which `unprepared` is as well.

    It reads `self.prepared`, a Prepared or None, and leaves to `unprepared` what that is not for,
    and calls with an `output_shape`.
    """
    eager_tensor, fast = ops.EagerTensor, pywrap_tfe.TFE_Py_FastPathExecute

    @functools.wraps(unprepared)
    def call(self: Any, *inputs: Any, output_shape: Any = None, name: str | None = None) -> Any:
        prepared, eager = self.prepared, context._context or context.context()
        if prepared is None or output_shape is not None or not eager._thread_local_data.is_eager:
            return unprepared(self, *inputs, output_shape=output_shape, name=name)
        op_name, dtypes = prepared
        for one in inputs:
            if type(one) is not eager_tensor:  # the fast path would convert it to the op's dtype
                return unprepared(self, *inputs, name=name)
        try:
            if len(inputs) == len(dtypes):
                return fast(eager, op_name, name, *inputs)
        except core._NotOkStatusException as error:
            is_unknown = error.code == tf.errors.NOT_FOUND  # to a worker of a cluster
            if not is_unknown and [one._datatype_enum() for one in inputs] == dtypes:
                ops.raise_from_not_ok_status(error, name)
        except core._FallbackException:
            pass
        return unprepared(self, *inputs, name=name)

    return call
