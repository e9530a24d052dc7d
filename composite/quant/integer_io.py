"""Functions of numbers as functions of the integers that stand for them.

Not for: what is inside, which stays as it is. Where the function itself begins by `quantize` of an
input with the same scale and zero point, that gives the caller's integers again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.quant.integers import dequantize, quantize

# How integers stand for numbers, by the arguments of `quantize`: scale, zero_point, dtype, axis.
Parameters = dict[str, Any]


def integer_io(
    function: Callable[..., Any],
    inputs: Sequence[Parameters | None],
    outputs: Sequence[Parameters | None],
) -> Callable[..., Any]:
    """A function of tensors, with integers in the place of floating inputs and outputs.

    Args:
        function: of tensors, by position; returns a tensor, a list or a tuple.
        inputs: for each argument how integers stand for it, `{"scale": 0.1, "zero_point": 3,
            "dtype": tf.int8, "axis": None}`, of which all but the scale may be left out; None for
            one that stays as it is.
        outputs: the same for each result.

    Returns:
        A function of integers, eager or to be traced; several results are a tuple. It raises
        TypeError for an argument of another dtype than was stated, ValueError for another number
        of arguments or results.
    """

    def of_integers(*arguments: Any) -> Any:
        _check_count("arguments", arguments, inputs)
        results = function(*map(_number, arguments, inputs))
        several = isinstance(results, list | tuple)
        each = list(results) if several else [results]
        _check_count("results", each, outputs)
        pairs = zip(each, outputs, strict=True)
        integers = [y if how is None else quantize(y, **how) for y, how in pairs]
        return tuple(integers) if several else integers[0]

    return of_integers


def _check_count(what: str, found: Sequence[Any], stated: Sequence[Any]) -> None:
    if len(found) != len(stated):
        raise ValueError(f"there are {len(found)} {what}, and {len(stated)} were stated")


def _number(argument: Any, how: Parameters | None) -> Any:
    """An argument as the function takes it."""
    if how is None:
        return argument
    wanted = tf.as_dtype(how.get("dtype", tf.int8))
    given = tf.convert_to_tensor(argument)
    if given.dtype != wanted:
        raise TypeError(f"an argument is {given.dtype.name}, and {wanted.name} was stated")
    return dequantize(given, how["scale"], how.get("zero_point", 0), axis=how.get("axis"))
