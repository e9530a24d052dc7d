"""One call to be checked: inputs as NumPy arrays, attributes as Python values.

Not for: where samples come from (samples.py), and how one is run (ways.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.schema import AttrSpec, OpSchema
from composite.ops import call_arguments
from composite.reference import floats

Array = np.ndarray[Any, Any]
Input = Array | list[Array]


@dataclasses.dataclass(frozen=True)
class Sample:
    """Arguments of one call.

    Attributes:
        inputs: an array for each input of the op, a list of arrays for a list input.
        attrs: a value for each attribute that a caller gives, defaults included.
        label: what is special about it, "as given" or "with NaN".
        variables: the positions of the inputs that are variables; their arrays are what these hold.
    """

    inputs: tuple[Input, ...]
    attrs: Mapping[str, Any]
    label: str = ""
    variables: frozenset[int] = frozenset()

    def arrays(self) -> Iterator[Array]:
        """The arrays, lists flattened."""
        for value in self.inputs:
            yield from value if isinstance(value, list) else [value]

    def of_variables(self) -> list[bool]:
        """Of each array, lists flattened: it is what a variable holds."""
        are: list[bool] = tf.nest.flatten(self.mapped(lambda _: False, lambda _: True))
        return are

    def mapped(
        self, function: Callable[[Array], Any], variable: Callable[[Array], Any] | None = None
    ) -> list[Any]:
        """The inputs with each array replaced; by `variable` what a variable holds."""

        def one(position: int, value: Input) -> Any:
            f = variable if variable and position in self.variables else function
            return [f(x) for x in value] if isinstance(value, list) else f(value)

        return [one(position, value) for position, value in enumerate(self.inputs)]

    def replaced(
        self,
        label: str,
        function: Callable[[Array], Array],
        variable: Callable[[Array], Array] | None = None,
    ) -> Sample:
        """A sample of other arrays; `variable` gives other contents of variables."""
        inputs = tuple(
            self.mapped(
                lambda x: np.asarray(function(x)), variable and (lambda x: np.asarray(variable(x)))
            )
        )
        return dataclasses.replace(self, inputs=inputs, label=label)

    def nearby(self) -> Iterator[Sample]:
        """Samples whose floating numbers are each a rounding error up or down."""
        for near in floats.nearby(self.arrays()):
            yield dataclasses.replace(self, inputs=tuple(self.rebuilt(near)))

    def tensors(self, arrays: Iterable[Array] | None = None) -> list[Any]:
        """The inputs as eager tensors, and as new variables; those of other `arrays`."""
        values = iter(self.arrays() if arrays is None else arrays)
        return self.mapped(lambda _: tf.constant(next(values)), lambda _: tf.Variable(next(values)))

    def rebuilt(self, flat: Sequence[Any]) -> list[Any]:
        """A flat list in the structure of the inputs."""
        values = iter(flat)
        return self.mapped(lambda _: next(values))

    def describe(self) -> str:
        """Attribute values, dtypes and shapes, in the words of a call."""

        def shape(array: Array) -> str:
            return f"{tf.as_dtype(array.dtype).name}{list(array.shape)}"

        shapes = self.mapped(shape, lambda array: f"variable {shape(array)}")
        inputs = [f"[{', '.join(x)}]" if isinstance(x, list) else x for x in shapes]
        attrs = [f"{name}={shown(value)}" for name, value in self.attrs.items()]
        return ", ".join(inputs + attrs) + (f" ({self.label})" if self.label else "")


def shown(value: Any) -> str:
    """A value of an attribute as it is written in Python."""
    if isinstance(value, tf.DType):
        return f"tf.{value.name}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, tf.TensorShape):
        return repr(value.as_list()) if value.rank is not None else "None"
    return repr(value)


def output_dtypes(schema: OpSchema, sample: Sample) -> list[tf.DType]:
    """The dtype of each output tensor. TypeError, ValueError when the call is not declared so."""
    definition = schema.op_def
    with tf.Graph().as_default():
        placeholder = tf.compat.v1.placeholder
        holders = sample.mapped(
            lambda x: placeholder(x.dtype, x.shape), lambda _: placeholder(tf.resource, [])
        )
        names = [arg.name for arg in schema.inputs]
        arguments = dict(zip(names, holders, strict=True)) | dict(sample.attrs)
        attrs = call_arguments.bind(definition, arguments).attrs
    dtypes: list[int] = []
    for arg in definition.output_arg:
        if arg.type_list_attr:
            dtypes += attrs[arg.type_list_attr].list.type
        else:
            one = attrs[arg.type_attr].type if arg.type_attr else arg.type
            dtypes += [one] * call_arguments.length(arg, attrs)
    return [tf.as_dtype(dtype) for dtype in dtypes]


def declared(schema: OpSchema, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that are given, as TensorFlow keeps them. TypeError: the op has none such."""
    specs = {spec.name: spec for spec in schema.attrs}
    for name in attrs:
        if name not in specs:
            raise TypeError(f"{schema.op_name} has no attribute {name!r}; it has {[*specs]}")
    return {name: as_declared(specs[name], value) for name, value in attrs.items()}


def as_declared(spec: AttrSpec, value: Any) -> Any:
    """An attribute's value as TensorFlow keeps it: floats are float32, lists are lists."""
    if isinstance(value, tuple):
        value = list(value)
    if spec.type == "float" and isinstance(value, int | float):
        return float(np.float32(value))
    if spec.type == "list(float)" and isinstance(value, list):
        return [float(np.float32(one)) for one in value]
    if spec.type == "type":
        return tf.as_dtype(value)
    if spec.type == "list(type)":
        return [tf.as_dtype(one) for one in value]
    if spec.type == "string" and isinstance(value, bytes):
        return value.decode()
    return value
