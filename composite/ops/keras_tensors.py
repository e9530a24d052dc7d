"""What Keras is told of ops: an operation for a call with its symbolic tensors, a name to save.

Nothing here imports Keras: who has one of its tensors has done so, and so has TensorFlow, unless it
is told to use another.
Not for: Keras layers whose code calls an op; they call it with tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def call(op: Any, arguments: Mapping[str, Any], name: str | None) -> Any:
    """The Keras tensors that a call of an op gives, if it was given any.

    Called while the error is handled that says that an argument is no tensor; raises that again if
    none is of Keras.
    """
    keras = sys.modules.get("keras")
    if not keras or not any(
        isinstance(one, keras.KerasTensor) for one in keras.tree.flatten(dict(arguments))
    ):
        raise  # noqa: PLE0704 - the caller handles it
    inputs = {arg.name: arguments[arg.name] for arg in op.schema.inputs}
    attrs = {attr.name: arguments[attr.name] for attr in op.schema.attrs}
    return _operation()(op, attrs, name=name)(**inputs)


def register(op: Any) -> None:
    """Makes an op known by its name to Keras' saved models: as an activation, a loss, in a Lambda.

    The newest op of a name is the one that a model which is loaded gets.
    """
    if keras := sys.modules.get("keras"):
        keras.saving.register_keras_serializable("composite", op.op_name)(type(op))
        _operation()  # a model that is loaded asks for it by name


def _operation() -> Any:
    from composite.ops import keras_layer  # noqa: F401 - a model that is loaded asks for its layer
    from composite.ops.keras_operation import CompositeOperation

    return CompositeOperation
