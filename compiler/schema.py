"""OpSchema: what an op's declaration says, read once from the OpDef that TensorFlow parsed.

The decorator's checks, the compiler, registration, the eager call, stubs and docs all read it.

Not for: parsing declaration strings (TensorFlow's own OpDefBuilder does, in the runtime), finding
mistakes in one (declaration.py). A leaf: importing it imports neither MLIR nor TVM, nor TensorFlow
before a proto or dtype is needed.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Collection
from typing import Any, Protocol

from composite.compiler.attr_values import attr_value_to_python


class Composable(Protocol):
    """An op that bodies can call: what `resolve` gives for an object that is one."""

    @property
    def schema(self) -> OpSchema:
        """The declaration, with `is_stateful` as its program has it."""

    @property
    def digest(self) -> str:
        """The digest of its program."""


@dataclasses.dataclass(frozen=True)
class ArgSpec:
    """An input or output: a tensor, N tensors of one type, or a list of tensors of several types.

    `dtype` is a fixed type as tensorflow.DataType, 0 where an attribute gives it.
    """

    name: str
    dtype: int
    type_attr: str
    number_attr: str
    type_list_attr: str
    is_ref: bool

    @property
    def is_list(self) -> bool:
        """Whether the value is a list of tensors."""
        return bool(self.number_attr or self.type_list_attr)

    @property
    def bound_attrs(self) -> tuple[str, ...]:
        """The attributes that a value given for this argument determines."""
        return tuple(filter(None, (self.type_attr, self.number_attr, self.type_list_attr)))


@dataclasses.dataclass(frozen=True)
class AttrSpec:
    """An attribute of the op.

    `type` is TensorFlow's name ("int", "list(type)"); `default` and `allowed` are Python values
    (dtypes as tf.DType); `allowed` is empty where every value is; `minimum` bounds an int from
    below, or the length of a list.
    """

    name: str
    type: str
    has_default: bool
    default: Any = dataclasses.field(hash=False)
    allowed: tuple[Any, ...]
    minimum: int | None

    def accepts(self, value: object) -> bool:
        """Say whether a value (or each element of a list) is one of the allowed ones."""
        if not self.allowed:
            return True
        values = value if isinstance(value, (list, tuple)) else (value,)
        return all(one in self.allowed for one in values)


@dataclasses.dataclass(frozen=True)
class OpSchema:
    """The declaration of an op.

    Attributes:
        op_def: the OpDef proto; treat it as read-only.
        inputs, outputs: in the order of the OpDef.
        attrs: the attributes that a caller gives, in the order of the OpDef.
        derived: the attributes that inputs determine.
        declared_derived: what the author listed under `derived_attrs`; None where nobody did.
    """

    op_def: Any = dataclasses.field(repr=False, hash=False, compare=False)
    op_name: str
    inputs: tuple[ArgSpec, ...]
    outputs: tuple[ArgSpec, ...]
    attrs: tuple[AttrSpec, ...]
    derived: tuple[AttrSpec, ...]
    is_stateful: bool
    declared_derived: tuple[str, ...] | None = None

    @classmethod
    def from_op_def(cls, op_def: Any, derived: Collection[str] | None = None) -> OpSchema:
        """Read an OpDef.

        Args:
            op_def: a tensorflow.OpDef, or its serialized bytes.
            derived: names that the author declared as derived, checked by declaration.py.
        """
        if isinstance(op_def, bytes):
            from tensorflow.core.framework import op_def_pb2

            op_def = op_def_pb2.OpDef.FromString(op_def)
        inputs = tuple(map(_arg_spec, op_def.input_arg))
        bound = {name for arg in inputs for name in arg.bound_attrs}
        attrs = tuple(map(_attr_spec, op_def.attr))
        return cls(
            op_def=op_def,
            op_name=op_def.name,
            inputs=inputs,
            outputs=tuple(map(_arg_spec, op_def.output_arg)),
            attrs=tuple(attr for attr in attrs if attr.name not in bound),
            derived=tuple(attr for attr in attrs if attr.name in bound),
            is_stateful=op_def.is_stateful,
            declared_derived=None if derived is None else tuple(derived),
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the Python function's parameters: inputs, then what is not derived."""
        return (*(arg.name for arg in self.inputs), *(attr.name for attr in self.attrs))

    @functools.cached_property
    def _by_name(self) -> dict[str, ArgSpec | AttrSpec]:
        specs: list[ArgSpec | AttrSpec] = [*self.inputs, *self.attrs, *self.derived]
        return {spec.name: spec for spec in specs}

    def input_or_attr(self, name: str) -> ArgSpec | AttrSpec | None:
        """Return the input or attribute of that name."""
        return self._by_name.get(name)

    def signature(self) -> inspect.Signature:
        """Return the signature of a call: inputs, attributes by keyword with defaults, `name`."""
        kinds = inspect.Parameter
        parameters = [kinds(arg.name, kinds.POSITIONAL_OR_KEYWORD) for arg in self.inputs]
        for attr in self.attrs:
            default = attr.default if attr.has_default else kinds.empty
            parameters.append(kinds(attr.name, kinds.KEYWORD_ONLY, default=default))
        parameters.append(kinds("name", kinds.KEYWORD_ONLY, default=None))
        return inspect.Signature(parameters)


def same_default(spec: AttrSpec, value: object) -> bool:
    """Say whether a Python default is the declared one; TensorFlow keeps floats as float32."""
    if spec.type == "float" and isinstance(value, (int, float)):
        import numpy as np

        return bool(np.float32(value) == np.float32(spec.default))
    if spec.type == "list(float)" and isinstance(value, (list, tuple)):
        import numpy as np

        return [np.float32(one) for one in value] == [np.float32(one) for one in spec.default]
    if isinstance(spec.default, list) and isinstance(value, (list, tuple)):
        return list(value) == spec.default
    return bool(value == spec.default)


def _arg_spec(arg: Any) -> ArgSpec:
    return ArgSpec(
        name=arg.name,
        dtype=arg.type,
        type_attr=arg.type_attr,
        number_attr=arg.number_attr,
        type_list_attr=arg.type_list_attr,
        is_ref=arg.is_ref,
    )


def _attr_spec(attr: Any) -> AttrSpec:
    has_default = attr.HasField("default_value")
    allowed = attr_value_to_python(attr.allowed_values) if attr.HasField("allowed_values") else []
    return AttrSpec(
        name=attr.name,
        type=attr.type,
        has_default=has_default,
        default=attr_value_to_python(attr.default_value, attr.type) if has_default else None,
        allowed=tuple(allowed),
        minimum=attr.minimum if attr.has_minimum else None,
    )
