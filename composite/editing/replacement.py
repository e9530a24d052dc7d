"""What stands in the place of what was found: a function, traced for the tensors there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from composite.editing.places import Place
from composite.editing.scope import Edge, Scope
from composite.editing.traced import Traced, trace
from composite.ops import functions
from composite.ops.op import constant


class Replacement:
    """A composite op, a tf.function or a Python function, as graphs for places."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.name = str(getattr(function, "__name__", None) or "the function")
        self._traced: dict[Any, Traced] = {}

    def at(self, scope: Scope, place: Place) -> tuple[Traced, list[Edge]]:
        """Its graph for a place, and what that takes. ValueError: it cannot stand there."""
        inputs = [
            [_given(scope, one) for one in of] if isinstance(of, list) else _given(scope, of)
            for of in place.inputs
        ]
        attrs = {n: v for n, v in place.attrs.items() if n in self._attributes(len(inputs))}
        key = repr((tf.nest.map_structure(_key, inputs), sorted(attrs.items(), key=lambda x: x[0])))
        if key not in self._traced:
            try:
                self._traced[key] = trace(self._function, inputs, attrs)
            except (TypeError, ValueError, tf.errors.OpError) as error:
                given = ", ".join(_text(x) for x in tf.nest.flatten(inputs))
                raise ValueError(
                    f"{self.name} cannot replace {place.root} of {scope}, where its inputs are "
                    f"{given}: {error}"
                ) from error
        self._check(scope, place, self._traced[key])
        flat = zip(place.sources, tf.nest.flatten(inputs), strict=True)
        taken = [of for of, given in flat if isinstance(given, tf.TensorSpec)]
        return self._traced[key], taken

    def _attributes(self, inputs: int) -> list[str]:
        """The parameters that are none of the inputs."""
        try:
            parameters = list(inspect.signature(self._function).parameters.values())
        except (TypeError, ValueError):  # what cannot be told takes its inputs alone
            return []
        by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        both = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        return by_name + both[inputs:]

    def _check(self, scope: Scope, place: Place, traced: Traced) -> None:
        """Raises ValueError where the results are not what has to be there."""
        where = f"{self.name} cannot replace {place.root} of {scope}"
        if len(traced.specs) != len(place.outputs):
            raise ValueError(
                f"{where}: it returns {len(traced.specs)} tensors, {len(place.outputs)} are needed"
            )
        for index, (spec, of) in enumerate(zip(traced.specs, place.outputs, strict=True)):
            wanted = scope.tensor(of)
            if spec.dtype != wanted.dtype or not spec.shape.is_compatible_with(wanted.shape):
                raise ValueError(
                    f"{where}: result {index} is {_text(spec)}, and {of} is {_text(wanted)}. "
                    "Return that, or leave the node out of what is matched"
                )


def _given(scope: Scope, of: Edge) -> Any:
    """What is known of a tensor: small integers by their value, as bodies may look at it."""
    tensor = scope.tensor(of)
    if functions.is_handle(tensor.dtype):
        return tf.TensorSpec(tensor.shape, tensor.dtype)
    known = constant(tensor)
    if known.dtype:
        return tf.make_ndarray(known)
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _key(given: Any) -> Any:
    return (
        given if isinstance(given, tf.TensorSpec) else (given.dtype, given.shape, given.tobytes())
    )


def _text(tensor: Any) -> str:
    return f"{tf.as_dtype(tensor.dtype).name}{tf.TensorShape(tensor.shape)}"
