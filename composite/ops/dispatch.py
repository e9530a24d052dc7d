"""TensorFlow's dispatch, for calls of ops with what is no tensor: ragged, sparse, extension types.

`tf.experimental.dispatch_for_api(op, {"x": Masked})` works for an op as for TensorFlow's own
functions. Asked only when a call has failed because an argument is no tensor: it costs other calls
nothing, and a type that converts to a tensor is converted.

Written against private APIs of TF 2.21, tensorflow.python.util.dispatch and the two attributes by
which that knows a function. tests/composite/ops/test_dispatch.py pins them.
"""

from __future__ import annotations

import collections
import functools
import inspect
from collections.abc import Mapping
from typing import Any

from tensorflow.python.util import dispatch

from composite.ops import keras_tensors


class Dispatchable:
    """What TensorFlow looks for on a function that calls may be dispatched from."""

    __signature__: inspect.Signature
    __name__: str

    @functools.cached_property
    def _tf_type_based_dispatcher(self) -> Any:
        dispatch._TYPE_BASED_DISPATCH_SIGNATURES[self] = collections.defaultdict(list)
        names = list(self.__signature__.parameters)
        # A call that comes to it has a value for each, so that any defaults will do.
        return dispatch._api_dispatcher.PythonAPIDispatcher(
            self.__name__, names, (None,) * len(names)
        )

    @functools.cached_property
    def _tf_fallback_dispatchers(self) -> list[Any]:
        return []


def call(op: Any, arguments: Mapping[str, Any], name: str | None) -> Any:
    """What a call gives that has failed since an argument is no tensor, by who knows its type.

    Called while that error is handled; raises it again if nobody does.
    """
    named = {**arguments, "name": name}
    if "_tf_type_based_dispatcher" in vars(op):  # somebody has asked for it
        result = op._tf_type_based_dispatcher.Dispatch((), named)
        if result is not NotImplemented:
            return result
    result = dispatch.dispatch(op, (), named)
    if result is not dispatch.OpDispatcher.NOT_SUPPORTED:
        return result
    return keras_tensors.call(op, arguments, name)
