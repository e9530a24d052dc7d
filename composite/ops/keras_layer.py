"""An op as a layer of Keras, with variables for some of its inputs.

Imports Keras, so it is imported only where Keras is in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras


@keras.saving.register_keras_serializable("composite")
class CompositeLayer(keras.layers.Layer):
    """A call of an op on the layer's inputs and its variables; made by `CompositeOp.as_layer`.

    Args:
        op: the op.
        variables: of each input that is a variable what `add_weight` takes, `shape` at least.
        attrs: the op's attributes, by name.
        kwargs: as any layer's: name, dtype, trainable.
    """

    def __init__(
        self,
        op: Any,
        variables: Mapping[str, Mapping[str, Any]],
        attrs: Mapping[str, Any],
        **kwargs: Any,
    ) -> None:
        names = [arg.name for arg in op.schema.inputs]
        for name, stated in variables.items():
            if name not in names:
                raise TypeError(f"{op.op_name} has no input {name!r}; it has {names}")
            if "shape" not in stated:
                raise TypeError(f"{op.op_name}: state the shape of the variable {name!r}")
        if len(names) == len(variables):
            raise TypeError(f"{op.op_name}: a layer has an input that is no variable")
        super().__init__(**kwargs)
        self.op = op
        self.attrs = dict(attrs)
        self.stated = {name: dict(stated) for name, stated in variables.items()}
        self._given = [name for name in names if name not in variables]

    def build(self, input_shape: Any) -> None:
        """Makes the variables, whose shapes may ask for sizes of the inputs."""
        shapes = self._by_name(input_shape, is_one=_is_shape(input_shape))
        self._own = {
            name: self.add_weight(**{"name": name, **stated, "shape": _sizes(stated, shapes)})
            for name, stated in self.stated.items()
        }
        self.built = True

    def call(self, inputs: Any) -> Any:
        """What the op returns for a tensor, or for several, in a list or by name."""
        given = self._by_name(inputs, is_one=not isinstance(inputs, list | tuple | dict))
        # In the dtype in which the layer computes, which may not be that of the variable.
        own = {name: keras.ops.convert_to_tensor(one) for name, one in self._own.items()}
        return self.op(**given, **own, **self.attrs)

    def _by_name(self, values: Any, *, is_one: bool) -> dict[str, Any]:
        """What is given for the inputs that are no variables."""
        if isinstance(values, dict):
            return dict(values)
        each = [values] if is_one else list(values)
        if len(each) != len(self._given):
            names = ", ".join(self._given)
            raise ValueError(f"{self.name} takes {len(self._given)} inputs ({names})")
        return dict(zip(self._given, each, strict=True))

    def get_config(self) -> dict[str, Any]:
        """The layer's own, the op as a model holds it anywhere, variables and attributes."""
        saved = {"op": self.op, "variables": self.stated, "attrs": self.attrs}
        return {**super().get_config(), **keras.saving.serialize_keras_object(saved)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> CompositeLayer:
        """The layer of a config; ValueError where the op is not defined."""
        own = {name: config[name] for name in ("op", "variables", "attrs")}
        rest = {name: value for name, value in config.items() if name not in own}
        return cls(**keras.saving.deserialize_keras_object(own), **rest)


def _is_shape(value: Any) -> bool:
    return not isinstance(value, dict) and all(dim is None or isinstance(dim, int) for dim in value)


def _sizes(stated: Mapping[str, Any], shapes: Mapping[str, Sequence[int | None]]) -> list[int]:
    """A variable's shape, in which ("x", -1) is a size of the input x."""
    sizes = []
    for dim in stated["shape"]:
        size = dim if isinstance(dim, int) else shapes[dim[0]][dim[1]]
        if size is None:
            raise ValueError(f"a variable needs the size of axis {dim[1]} of {dim[0]!r}")
        sizes.append(size)
    return sizes
