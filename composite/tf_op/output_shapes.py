"""Where the shapes of a function's outputs come from, as attributes and inputs of its node.

What is known while the node is made stands in its attributes, so that shapes are known behind it;
anything else is an input, a vector of int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

# In the attribute shape_of (composite/runtime/foreign/op.cc), beside the numbers of inputs.
_STATED, _GIVEN = -1, -2


@dataclass(frozen=True)
class SameAs:
    """The shape of an input, which `same_as` makes."""

    input: int


def same_as(input: int) -> SameAs:  # noqa: A002 - the word for it
    """For `output_shape`: the output has the shape of that input, the first of which is 0."""
    if input < 0:
        raise ValueError(f"same_as({input}): inputs are numbered from 0")
    return SameAs(input)


@dataclass
class Shapes:
    """The shapes of all outputs of a node.

    Attributes:
        shape_of: the attribute, an element for each output.
        shapes: the attribute: dims, with None for an unknown one; None for an unknown rank.
        given: the inputs behind those of the function, vectors of int64.
    """

    shape_of: list[int] = field(default_factory=list)
    shapes: list[list[int | None] | None] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)

    def add(self, source: int, dims: list[int | None] | None = None) -> None:
        """The shape of one more output."""
        self.shape_of.append(source)
        self.shapes.append(dims)

    def read(self, vector: Any) -> None:
        """One more output has the shape that this tensor holds in the call."""
        self.add(_GIVEN)
        self.given.append(vector)


@dataclass(frozen=True)
class Outputs:
    """What a function gives.

    Attributes:
        dtypes: of the outputs, as TensorFlow numbers them.
        single: whether `shape` is that of the one output, not a list of all.
        shape: as `Module.func` takes it.
        returns: whether the function makes its outputs, so that it may leave dims open.
    """

    dtypes: list[int]
    single: bool
    shape: Any
    returns: bool

    @classmethod
    def of(cls, output_shape: Any, output_dtype: Any, *, returns: bool) -> Outputs:
        """Those that `Module.func` is told of."""
        single = not isinstance(output_dtype, (list, tuple))
        dtypes = [output_dtype] if single else output_dtype
        numbers = [tf.as_dtype(dtype).as_datatype_enum for dtype in dtypes]
        return cls(numbers, single, output_shape, returns)

    def fixed(self) -> Shapes | None:
        """The shapes if every call has the same; None if they must be looked at in each call."""
        if callable(self.shape):
            return None
        if any(callable(part) or _has_tensors(part) for part in self._parts(self.shape)):
            return None
        return self.shapes((), self.shape)

    def shapes(self, inputs: Sequence[Any], shape: Any) -> Shapes:
        """The shapes in one call, of these tensors; `shape` as the attribute."""
        shapes = Shapes()
        ruled = callable(shape)
        if ruled:
            shape = _by_rule(shape, inputs)
        for part in self._parts(shape):
            rule = callable(part)
            self._add(shapes, _by_rule(part, inputs) if rule else part, ruled or rule)
        return shapes

    def attrs(self, shapes: Shapes) -> dict[str, Any]:
        """The attributes of a node. One costs an eager call 0.4 us: what the op assumes is not."""
        attrs: dict[str, Any] = {"Tout": self.dtypes}
        stated = any(dims is not None for dims in shapes.shapes)
        if stated:
            attrs["shapes"] = shapes.shapes
        assumed = _STATED if self.returns or stated else 0
        if any(source != assumed for source in shapes.shape_of):
            attrs["shape_of"] = shapes.shape_of
        if self.returns:
            attrs["returns"] = True
        return attrs

    def _parts(self, shape: Any) -> list[Any]:
        if self.single:
            return [shape]
        if shape is None or isinstance(shape, SameAs):
            return [shape] * len(self.dtypes)
        if not isinstance(shape, (list, tuple)) or len(shape) != len(self.dtypes):
            raise ValueError(
                f"output_shape is {shape!r}: a function with a list of {len(self.dtypes)} output "
                "dtypes has a list of as many shapes"
            )
        return list(shape)

    def _add(self, shapes: Shapes, part: Any, ruled: bool) -> None:
        if part is None:
            shapes.add(_STATED if self.returns else 0)
        elif isinstance(part, SameAs):
            shapes.add(part.input)
        elif _is_tensor(part):
            shapes.read(_vector(part))
        elif _has_tensors(part):
            shapes.read(_stacked([_checked(dim) for dim in part]))
        else:
            dims = _known(part)
            is_open = dims is None or None in dims
            if is_open and not self.returns:
                raise ValueError(
                    f"output_shape {part!r} is not known, and the output is made before the call"
                )
            if ruled and not is_open and tf.executing_eagerly():
                # In an attribute, each new shape would be an op of its own to TensorFlow, for good.
                shapes.read(tf.constant(dims, tf.int64, [len(dims or ())]))
            else:
                shapes.add(_STATED, dims)


def _by_rule(rule: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    return rule(*(_dims(tf.convert_to_tensor(one)) for one in inputs))


def _dims(tensor: Any) -> Any:
    """The dims of a tensor, a scalar tensor for each that is unknown; all as one, if the rank is.

    So a rule is written once, and what it says of known dims is known while tracing.
    """
    if tensor.shape.rank is None:
        return tf.shape(tensor, out_type=tf.int64)
    if tensor.shape.is_fully_defined():
        return tuple(tensor.shape)
    sizes = tf.shape(tensor, out_type=tf.int64)
    return tuple(sizes[i] if dim is None else dim for i, dim in enumerate(tensor.shape))


def _has_tensors(part: Any) -> bool:
    if isinstance(part, (list, tuple)):
        return any(map(_is_tensor, part))
    return _is_tensor(part)


def _is_tensor(value: Any) -> bool:
    return bool(tf.is_tensor(value)) or isinstance(value, (tf.Variable, np.ndarray))


def _known(part: Any) -> list[int | None] | None:
    try:
        shape = tf.TensorShape(part)
    except (TypeError, ValueError) as error:
        raise _no_shape(part) from error
    return None if shape.rank is None else list(shape)


def _no_shape(part: Any) -> ValueError:
    return ValueError(
        f"output_shape {part!r} is no shape: write a list of sizes and scalar tensors, a tensor, "
        "same_as(input), or a function from the shapes of the inputs to one of these"
    )


def _checked(dim: Any) -> Any:
    if _is_tensor(dim):
        dim = tf.convert_to_tensor(dim)
        if dim.shape.rank not in (0, None) or not dim.dtype.is_integer:
            raise ValueError(f"a dim of output_shape is {dim!r}, not a scalar of integers")
        return dim
    if not isinstance(dim, (int, np.integer)) or dim < 0:
        raise ValueError(f"a dim of output_shape is {dim!r}, not a size or a scalar tensor")
    return int(dim)


def _stacked(dims: list[Any]) -> Any:
    if tf.executing_eagerly():
        return tf.constant([int(dim) for dim in dims], tf.int64)
    return tf.stack([tf.cast(dim, tf.int64) for dim in dims])


def _vector(shape: Any) -> Any:
    shape = tf.convert_to_tensor(shape)
    if shape.shape.rank not in (1, None) or not shape.dtype.is_integer:
        raise ValueError(f"output_shape is {shape!r}, not a vector of integers")
    return tf.cast(shape, tf.int64)
