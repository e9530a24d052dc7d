"""`composite.replace`: of graphs, functions, Keras models and folders of SavedModels."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.aot.replacing import replaced
from composite.editing import loaded_function
from composite.editing.editing import Editor, edit
from composite.editing.match import Match, match_of
from composite.editing.report import Joined, ReplacementReport
from composite.editing.scope import Handle
from composite.ops.keras_models import inputs_of
from composite.saving import graph_protos, saved_model, saving
from composite.saving.model_loading import require

Report = TypeVar("Report", bound=Joined)
_Path = str | os.PathLike[str]
_Function = Callable[..., Any]
_Match = str | re.Pattern[str] | _Function | Match


@overload
def replace(
    model: _Path, match: _Match, function: _Function, *, out: _Path
) -> ReplacementReport: ...


@overload
def replace(model: Any, match: _Match, function: _Function) -> Edited[ReplacementReport]: ...


def replace(
    model: Any, match: _Match, function: _Function, *, out: _Path | None = None
) -> Edited[ReplacementReport] | ReplacementReport:
    """Replaces parts of a model by a function: a composite op, a tf.function, a Python function.

    Loops, branches and called functions are looked into. The model that is given stays as it is.
    Nodes whose results are replaced keep their names; inner values of a pattern must not be taken
    by anything else.

    Args:
        model: a GraphDef, a tf.function with an input signature, a trace of one (a
            ConcreteFunction), a Keras model, which is called for inference, or the folder of a
            SavedModel, whose Python code is not needed.
        match: what to replace: the type of an op ("Relu"), a compiled regular expression of
            nodes' names, a Python function whose ops are the pattern, or a `composite.Match`,
            which says more.
        function: is called with the inputs of the node (a list where the op takes one), or of the
            pattern, and returns its results. A parameter that has the name of an attribute of the
            node and is none of the inputs is given its value. It uses no variables but its inputs.
        out: for a folder, the one to write: the same model with its variables, assets and
            signatures. What is there is replaced when all went well.

    Returns:
        An Edited, which is called as the function or model is; its `graph_def` and `report` say
        what became of it. For a folder the report.

    Raises:
        TypeError: for a model or a match that is none of these, or a folder without `out`.
        ValueError: `function` does not take the inputs of a place or returns other dtypes or
            shapes; the message names it. Or the pattern is none, or an op is not known.
        FileNotFoundError: if the folder has no SavedModel.
        ImportError: if the SavedModel needs composites that are not loaded.
    """
    wanted = match_of(match)
    if not callable(function):
        raise TypeError(f"composite.replace puts a function in place of {wanted}, not {function!r}")
    return edited_by(edit(wanted, function), model, out, "composite.replace")


def edited_by(
    editor: Editor[Report], model: Any, out: _Path | None, word: str
) -> Edited[Report] | Report:
    """A model that an editor has changed; `word` is the function that users called."""
    if isinstance(model, str | os.PathLike):
        if out is None:
            raise TypeError(f"{word} in a folder needs out=, the folder to write")
        return _in_folder(Path(model), Path(out), editor)
    if out is not None:
        raise TypeError("out= is for the folder of a SavedModel")
    if isinstance(model, GraphDef):
        graph_def = GraphDef()
        graph_def.CopyFrom(model)
        return Edited(graph_def, None, editor(graph_def, name="GraphDef").report)
    return _in_function(model, editor, word)


class Edited(Generic[Report]):
    """A graph or a function in which `composite.replace` or `composite.recognize` replaced parts.

    Attributes:
        graph_def: the graph; of a function, it and what it calls are in the library.
        function: a tf.ConcreteFunction with the inputs, results and variables of the one that was
            given; None where that was a GraphDef.
        report: what was replaced, and what nearly.
    """

    def __init__(self, graph_def: GraphDef, function: Any, report: Report) -> None:
        """Made by `composite.replace` and `composite.recognize`."""
        self.graph_def = graph_def
        self.function = function
        self.report = report

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function as the original is called."""
        if self.function is None:
            raise TypeError("a GraphDef is no function: import its graph_def")
        return self.function(*args, **kwargs)


def _in_function(model: Any, editor: Editor[Report], word: str) -> Edited[Report]:
    named = re.sub(r"\W", "_", str(getattr(model, "name", None) or getattr(model, "__name__", "f")))
    concrete = concrete_of(model, word)
    graph_def, name = loaded_function.graph_of(concrete)
    handles = {name: loaded_function.handles_of(concrete)}
    outcome = editor(graph_def, name=named, handles=handles)
    made = loaded_function.function_of(graph_def, name, concrete, outcome.handles)
    return Edited(graph_def, made, outcome.report)


def concrete_of(model: Any, word: str) -> Any:
    """The one trace of a function, or of the inference of a Keras model."""
    if isinstance(model, tf.keras.Model):
        given = inputs_of(model)
        if given is None:
            raise ValueError(
                f"{word} needs the inputs of the Keras model: build it, or give a trace, "
                "tf.function(model).get_concrete_function(tf.TensorSpec(...))"
            )
        specs = tf.nest.map_structure(_spec, given)
        return tf.function(lambda x: model(x, training=False)).get_concrete_function(specs)
    if hasattr(model, "captured_inputs") and hasattr(model, "function_def"):
        return model
    if getattr(model, "input_signature", None) is not None:
        return model.get_concrete_function()
    if hasattr(model, "get_concrete_function"):
        raise TypeError(
            f"a tf.function without an input signature has many graphs: give {word} the "
            "one that is meant, function.get_concrete_function(tf.TensorSpec(...))"
        )
    raise TypeError(
        f"{word} takes a GraphDef, a tf.function, a Keras model or the folder of a "
        f"SavedModel, not {model!r}"
    )


def _spec(given: Any) -> Any:
    """That of an input of a Keras model."""
    kind = tf.SparseTensorSpec if getattr(given, "sparse", False) else tf.TensorSpec
    return kind(given.shape, given.dtype)


def _in_folder(folder: Path, out: Path, editor: Editor[Report]) -> Report:
    saved = saved_model.read(folder)
    saved_model.require_outside(folder, out)
    require(folder)
    reports = []
    for meta_graph in saved.meta_graphs:
        graph_def, handles = meta_graph.graph_def, _handles(meta_graph)
        outcome = editor(graph_def, name=str(folder), keep=True, handles=handles)
        reports.append(outcome.report)
        graph_protos.name_ops(meta_graph)
    with replaced(out) as made:
        shutil.copytree(folder, made, dirs_exist_ok=True)
        saved_model.write(saved, made)
        saving.note_needs(made)
    first, *others = reports
    for report in others:
        first = first.joined(report)
    return first


def _handles(meta_graph: Any) -> dict[str, dict[int, Handle]]:
    """What a SavedModel says of the variables that its functions hold, by function and argument."""
    objects = meta_graph.object_graph_def
    found: dict[str, dict[int, Handle]] = {}
    for definition in meta_graph.graph_def.library.function:
        name = definition.signature.name
        if name not in objects.concrete_functions:
            continue
        bound = list(objects.concrete_functions[name].bound_inputs)  # its last arguments
        first = len(definition.signature.input_arg) - len(bound)
        nodes = {index: objects.nodes[node] for index, node in enumerate(bound, first)}
        found[name] = {
            index: Handle(node.variable.dtype, node.variable.shape)
            for index, node in nodes.items()
            if node.WhichOneof("kind") == "variable"
        }
    return found
