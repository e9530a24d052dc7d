"""An op as an operation of a Keras model, made by a call with Keras tensors.

Imports Keras, so it is imported only where Keras is in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras


@keras.saving.register_keras_serializable("composite")
class CompositeOperation(keras.Operation):
    """A call of an op, whose inputs a model gives by name.

    Args:
        op: the op.
        attrs: its attributes, by name.
        name: of the operation in the model.
    """

    def __init__(self, op: Any, attrs: Mapping[str, Any], name: str | None = None) -> None:
        super().__init__(name or f"{op.__name__}_{keras.backend.get_uid(op.__name__)}")
        self.op = op
        self.attrs = dict(attrs)

    def call(self, **inputs: Any) -> Any:
        """What the op returns; for Keras tensors, Keras finds shapes and dtypes by tracing it."""
        return self.op(**inputs, **self.attrs)

    def get_config(self) -> dict[str, Any]:
        """The name, the op as a model holds it anywhere, and the attributes."""
        saved = {"op": self.op, "attrs": self.attrs}
        return {"name": self.name, **keras.saving.serialize_keras_object(saved)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> CompositeOperation:
        """The operation of a config; ValueError where the op is not defined."""
        saved = {"op": config["op"], "attrs": config["attrs"]}
        return cls(**keras.saving.deserialize_keras_object(saved), name=config["name"])
