"""A program in Python in which numbers are divided by zero as TensorFlow does.

A number that follows from a tensor's decision is one that only the run knows: its `/` is RealDiv,
which gives an infinity or NaN where Python raises. Known numbers raise in both.
"""

from __future__ import annotations

import ast
import operator
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from composite.checking.compare import Difference
from composite.checking.oracle import Case
from composite.checking.sample import Sample
from composite.checking.skipped import Skipped
from composite.checking.ways import WAYS
from tests.fuzz.program import Program

_OPERATORS: dict[type[ast.operator], tuple[Callable[[Any, Any], Any], str]] = {
    ast.Div: (operator.truediv, "RealDiv"),
    ast.FloorDiv: (operator.floordiv, "FloorDiv"),
    ast.Mod: (operator.mod, "FloorMod"),
}


def agrees(program: Program, version: int, case: Case, way: str) -> bool:
    """Whether a call divides a number that the run knows by zero where Python does, and goes on."""
    if not isinstance(case.expected.error, ZeroDivisionError):
        return False
    file = program.file(version)
    frames = traceback.extract_tb(case.expected.error.__traceback__)
    place = f"{file}:{[frame.lineno for frame in frames if frame.filename == file][-1]}:"
    if not _divides_at(place, case.op, case.sample):
        return False
    function = program.as_python(_Divides(), f"<fuzz {program.seed} division>", {"_by": _by})
    divided = Case(case.op, case.sample, function)
    try:
        WAYS[way](divided)
    except (Difference, Skipped):
        return False
    return divided.expected.error is None


def _divides_at(place: str, op: Any, sample: Sample) -> bool:
    """Whether the expansion has a division of numbers that only the run knows at a place."""
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in sample.arrays()]
    try:
        library = op.expand(*sample.rebuilt(specs), **sample.attrs)
    except tf.errors.OpError:
        return False
    divisions = {name for _, name in _OPERATORS.values()}
    return any(
        node.op in divisions
        and node.attr["T"].type == tf.float64.as_datatype_enum
        and any(place in told for told in node.experimental_debug_info.original_node_names)
        for function in library.function
        for node in function.node_def
    )


def _by(name: str, a: Any, b: Any) -> Any:
    divide = next(function for function, one in _OPERATORS.values() if one == name)
    try:
        return divide(a, b)
    except ZeroDivisionError:
        if name != "RealDiv" and isinstance(a, int) and isinstance(b, int):
            raise  # so does TensorFlow
        with np.errstate(all="ignore"):
            return float(divide(np.float64(a), np.float64(b)))


class _Divides(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if type(node.op) not in _OPERATORS:
            return node
        name = ast.Constant(_OPERATORS[type(node.op)][1])
        return ast.Call(ast.Name("_by", ast.Load()), [name, node.left, node.right], [])
