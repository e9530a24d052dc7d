"""`composite.accelerate` of a SavedModel: folder in, folder out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.acceleration import drawing, signatures
from composite.acceleration.comparing import Terms, compared
from composite.acceleration.report import AccelerationReport, ModelReport
from composite.aot.replacing import replaced
from composite.saving import saved_model
from composite.saving.model_loading import load_model


class Call(NamedTuple):
    """What `composite.accelerate` was asked of a folder, by the names of its arguments."""

    inputs: Mapping[str, Any]
    signatures: Sequence[str] | None
    size: int
    terms: Terms


def accelerated(folder: Path, out: Path, call: Call) -> ModelReport:
    """Writes the model of `folder` to `out`, with regions in the signatures that gain."""
    saved = saved_model.read(folder)
    loaded = load_model(folder)
    meta_graph = saved.meta_graphs[0]  # loading a model of several is an error
    reports: dict[str, AccelerationReport] = {}
    left_out: dict[str, str] = {}
    gaining: set[str] = set()
    for name in _names(loaded.signatures, call):
        function = signatures.function_of(meta_graph, name)
        try:
            reports[name] = _report(loaded.signatures[name], name, function, call)
        except (_LeftOutError, ValueError, tf.errors.OpError) as error:
            left_out[name] = " ".join(str(getattr(error, "message", error)).split())
            continue
        if function is not None and reports[name].is_gain:
            gaining.add(function)
    with replaced(out) as made:
        shutil.copytree(folder, made, dirs_exist_ok=True)
        if gaining:
            signatures.mark(meta_graph, gaining, call.terms.deny)
            saved_model.write(saved, made)
    return ModelReport(str(folder), reports, left_out)


class _LeftOutError(Exception):
    """Why a signature is not looked at."""


def _names(known: Mapping[str, Any], call: Call) -> list[str]:
    """The signatures to look at. ValueError for one, or an input, that the model has not."""
    names = sorted(known) if call.signatures is None else list(call.signatures)
    unknown = sorted(set(names) - set(known))
    if unknown:
        has = ", ".join(sorted(known)) or "none"
        raise ValueError(f"the model has no signature {unknown[0]}; it has {has}")
    taken = {name for one in names for name in _specs(known[one])}
    if wrong := sorted(set(call.inputs) - taken):
        has = ", ".join(sorted(taken)) or "none"
        raise ValueError(f"no signature has an input {wrong[0]}; they have {has}")
    return names


def _specs(signature: Any) -> dict[str, Any]:
    specs: dict[str, Any] = signature.structured_input_signature[1]
    return specs


def _report(signature: Any, name: str, function: str | None, call: Call) -> AccelerationReport:
    if function is None:
        raise _LeftOutError("it is nodes of the model's graph, no function, as TF1 saves models")
    if signatures.is_marked(function):
        raise _LeftOutError("it has regions already")
    given = {
        key: tf.convert_to_tensor(call.inputs[key], spec.dtype)
        if key in call.inputs
        else drawing.drawn(spec, call.size)
        for key, spec in _specs(signature).items()
    }
    return compared(_taking_a_dict(signature), name, [given], call.terms).report


def _taking_a_dict(signature: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda inputs: signature(**inputs)
