"""Outputs of a function as its library declares them (composite/kernels/signatures.py).

The library of a Relax program says nothing of shapes and dtypes: the IRModule that it was compiled
from does, where it is at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.kernels import signatures
from composite.kernels.signatures import Parameter
from composite.tf_op.output_shapes import same_as


def dtypes(name: str, parameters: Sequence[Parameter], outputs: int) -> list[str]:
    """The dtypes of the last so many parameters.

    ValueError where there are not so many, or TensorFlow has none of that name.
    """
    if not 0 < outputs <= len(parameters):
        raise ValueError(
            f"{name} has {len(parameters)} parameters ({_described(parameters)}), and cannot have "
            f"{outputs} outputs"
        )
    found = [one.dtype for one in parameters[-outputs:]]
    for dtype in found:
        try:
            tf.as_dtype(dtype)
        except TypeError as error:
            raise ValueError(f"{name} has an output of {dtype}, which TensorFlow lacks") from error
    return found


def shapes(name: str, parameters: Sequence[Parameter], outputs: int) -> list[Any]:
    """The shapes of the last so many parameters, each in a form that `Module.func` takes.

    ValueError for one with a dim that does not follow from the shapes of the inputs.
    """
    inputs = parameters[: len(parameters) - outputs]
    return [_shape(name, one, inputs) for one in parameters[len(inputs) :]]


def returned(function: Any) -> tuple[Any, Any]:
    """The shape and the dtype of what a function of a Relax IRModule returns, or a list of each.

    As `Module.func` takes them: for a tuple lists. A shape that does not follow from those of the
    inputs is None. ValueError where the function returns something else than tensors.
    """
    fields = getattr(function.ret_ty, "fields", None)
    types = [function.ret_ty] if fields is None else list(fields)
    if not all(getattr(one, "dtype", None) for one in types):
        raise ValueError(f"it returns {function.ret_ty}, and not tensors of dtypes that are known")
    inputs = [_of_type(one.name, one.ty) for one in function.params]
    found = [_returned_shape(_of_type("result", one), inputs) for one in types]
    dtypes = [one.dtype for one in types]
    return (found[0], dtypes[0]) if fields is None else (found, dtypes)


def _of_type(name: str, of: Any) -> Parameter | None:
    """A tensor by its type in Relax; None for one without dims, and for what is no tensor."""
    dims = getattr(getattr(of, "shape", None), "values", None)
    if dims is None:
        return None
    try:
        return Parameter(name, of.dtype, tuple(signatures.parsed(str(dim)) for dim in dims))
    except (SyntaxError, ValueError):  # a dim that is no arithmetic of names
        return None


def _returned_shape(output: Parameter | None, inputs: Sequence[Parameter | None]) -> Any:
    if output is None:
        return None
    try:
        return _shape("", output, [one or Parameter("", "", ()) for one in inputs])
    except ValueError:
        return None


def _shape(name: str, output: Parameter, inputs: Sequence[Parameter]) -> Any:
    if all(isinstance(dim, int) for dim in output.dims):
        return list(output.dims)
    for number, one in enumerate(inputs):
        if one.dims == output.dims:
            return same_as(number)
    known = {dim for one in inputs for dim in one.dims if isinstance(dim, str)}
    for dim in output.dims:
        if isinstance(dim, str) and not signatures.names(dim) <= known:
            raise ValueError(
                f"{name}({_described([*inputs, output])}): the size {dim} of its output "
                f"{output.name} is none of an input: give output_shape"
            )
    return _rule(output, inputs)


def _rule(output: Parameter, inputs: Sequence[Parameter]) -> Callable[..., list[Any]]:
    """The shape of an output by the shapes of the inputs."""

    def rule(*given: Any) -> list[Any]:
        sizes: dict[str, Any] = {}
        for dims, one in zip(given, inputs, strict=False):
            is_known = isinstance(dims, tuple)  # or else a tensor of all dims
            own = dims if is_known else [dims[axis] for axis in range(len(one.dims))]
            sizes |= {d: size for size, d in zip(own, one.dims, strict=False) if isinstance(d, str)}
        # Of inputs that lack dims the function says itself what is wrong with them.
        return [
            signatures.evaluate(dim, {one: sizes.get(one, 0) for one in signatures.names(dim)})
            if isinstance(dim, str)
            else dim
            for dim in output.dims
        ]

    return rule


def _described(parameters: Sequence[Parameter]) -> str:
    return ", ".join(
        f"{one.name}: {one.dtype}[{', '.join(map(str, one.dims))}]" for one in parameters
    )
