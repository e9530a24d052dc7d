"""`composite.recognize`: of graphs, functions, Keras models and folders of SavedModels."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, overload

import tensorflow as tf

from composite.editing.editing import Handles, Outcome, changed_by
from composite.editing.models import Edited, concrete_of, edited_by
from composite.ops.op import CompositeOp
from composite.ops.registry import OPS
from composite.recognition.finding import Finder, Recognized
from composite.recognition.report import NearlyRecognized, Outputs, RecognitionReport
from composite.recognition.view import Views
from composite.trials import results
from composite.trials.drawing import drawn

_Path = str | os.PathLike[str]
_WORD = "composite.recognize"


@overload
def recognize(
    model: _Path, ops: Sequence[CompositeOp] | None = None, *, out: _Path
) -> RecognitionReport: ...


@overload
def recognize(
    model: Any, ops: Sequence[CompositeOp] | None = None, inputs: Any = None
) -> Edited[RecognitionReport]: ...


def recognize(
    model: Any,
    ops: Sequence[CompositeOp] | None = None,
    inputs: Any = None,
    *,
    out: _Path | None = None,
) -> Edited[RecognitionReport] | RecognitionReport:
    """Finds ops in a model that was written without them, and puts them in the place of theirs.

    What an op computes is read from its expansion, for the dtypes and shapes that are met, and
    found in most spellings: operands exchanged, x * x for square(x), 1 / sqrt(x) for rsqrt(x),
    constants multiplied out, reshapes and transposes in between. Attributes are recovered, and
    inputs that are not there are ones or zeros. Before anything is replaced, values are compared.
    Loops, branches and called functions are looked into. The model that is given stays as it is.

    Args:
        model: a GraphDef, a tf.function with an input signature, a trace of one (a
            ConcreteFunction), a Keras model, which is called for inference, or the folder of a
            SavedModel, whose Python code is not needed.
        ops: what to look for, by default all composites of the process but compositions of
            TensorFlow's ops. Those with larger bodies come first.
        inputs: the arguments of a call, in which the results of the model as a whole are compared:
            a list of them, or one. By default, they are drawn.
        out: for a folder, the one to write: the same model with its variables, assets and
            signatures. What is there is replaced when all went well.

    Returns:
        An Edited, which is called as the function or model is; its `graph_def` and `report` say
        what became of it. For a folder the report.

    Raises:
        TypeError: for a model that is none of these, ops that are none, a folder without `out`,
            or `inputs` of what is not called.
        ValueError: there are no ops, or a model has no inputs yet.
        FileNotFoundError: if the folder has no SavedModel.
        ImportError: if the SavedModel needs composites that are not loaded.
    """
    wanted = _wanted(ops)
    is_called = not isinstance(model, str | os.PathLike | tf.compat.v1.GraphDef)
    if inputs is not None and not is_called:
        raise TypeError("inputs= are for a function or a Keras model, which can be called")
    if is_called:
        model = concrete_of(model, _WORD)

    def editor(
        graph_def: Any, *, name: str, keep: bool = False, handles: Handles | None = None
    ) -> Outcome[RecognitionReport]:
        return _recognized(graph_def, wanted, name=name, keep=keep, handles=handles)

    result = edited_by(editor, model, out, _WORD)
    if is_called and isinstance(result, Edited):
        compared = _outputs(model, result.function, inputs)
        result.report = dataclasses.replace(result.report, outputs=compared)
    return result


def _wanted(ops: Sequence[CompositeOp] | None) -> list[CompositeOp]:
    """The ops to look for, those with larger bodies first."""
    if ops is None:
        ops = [op for op in OPS.all_current() if not op.composes and not op.schema.is_stateful]
    for op in ops:
        if not isinstance(op, CompositeOp):
            raise TypeError(f"{_WORD} looks for composite ops, {op!r} is none")
    if not ops:
        raise ValueError(f"{_WORD} needs ops: define some, or load a library that has them")

    def size(op: CompositeOp) -> int:
        return sum(len(function.node_def) for function in op.program.function)

    return sorted(ops, key=size, reverse=True)


def _recognized(
    graph_def: Any,
    ops: Sequence[CompositeOp],
    *,
    name: str,
    keep: bool,
    handles: Handles | None,
) -> Outcome[RecognitionReport]:
    """Puts ops into a graph, one after the other."""
    recognized: list[Recognized] = []
    near: list[NearlyRecognized] = []
    taken: set[tuple[str, str]] = set()
    known: Handles = handles or {}
    views = Views()
    for op in ops:
        finder = Finder(op, views)
        changed = changed_by(graph_def, finder, finder, keep=keep, handles=known)
        known = changed.handles()
        recognized += finder.recognized
        near += [NearlyRecognized(op.op_name, *one) for one in changed.near]
        taken |= {(one.function, node) for one in changed.replaced for node in one.nodes}
    left = [one for one in near if (one.function, one.node) not in taken]
    names = tuple(op.op_name for op in ops)
    report = RecognitionReport(name, names, tuple(recognized), tuple(left), Outputs())
    return Outcome(report, known)


def _outputs(original: Any, function: Any, inputs: Any) -> Outputs:
    """The results of a model with the ops beside those without."""
    if inputs is None:
        try:
            args, kwargs = drawn(original.structured_input_signature)
        except ValueError as error:
            return Outputs(skipped=str(error))
    else:
        args, kwargs = list(inputs) if isinstance(inputs, list | tuple) else [inputs], {}
    found, wanted = (results.flat(one(*args, **kwargs)) for one in (function, original))
    moved = results.deviation(found, wanted, None)
    return Outputs(moved.distance, moved.bound, skipped="")
