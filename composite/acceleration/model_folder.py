"""`composite.accelerate` of a SavedModel: folder in, folder out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.acceleration import signatures
from composite.acceleration.comparing import Accelerated, Terms, compared, in_one_line, settled
from composite.acceleration.report import AccelerationReport, ModelReport
from composite.aot.replacing import replaced
from composite.binding.log import logger
from composite.kernels import verdicts
from composite.saving import contents, info, region_kernels, saved_model
from composite.saving.model_loading import load_model
from composite.trials import drawing


class Call(NamedTuple):
    """What `composite.accelerate` was asked of a folder, by the names of its arguments."""

    inputs: Mapping[str, Any]
    signatures: Sequence[str] | None
    size: int
    terms: Terms


def accelerated(folder: Path, out: Path, call: Call) -> ModelReport:
    """Writes the model of `folder` to `out`: signatures that gain have regions, and kernels."""
    saved = saved_model.read(folder)
    saved_model.require_outside(folder, out)
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
            left_out[name] = in_one_line(error)
            continue
        if function is not None and reports[name].is_gain:
            gaining.add(function)
    with replaced(out) as made:
        shutil.copytree(folder, made, dirs_exist_ok=True)
        if gaining:
            signatures.mark(meta_graph, gaining, call.terms.deny)
            saved_model.write(saved, made)
            _put_kernels([report for report in reports.values() if report.is_gain], made)
        count = region_kernels.count(made)
    return ModelReport(str(folder), reports, left_out, count)


def _put_kernels(reports: Sequence[AccelerationReport], made: Path) -> None:
    """Puts the kernels of these signatures' regions into the model."""
    regions = {one.name: one for report in reports for one in report.partition.regions}
    kernels = [kernel for name in regions for kernel in verdicts.of_function(name)]
    written = [function for one in regions.values() for function in (one.function, *one.runs)]
    digest = region_kernels.write(made, written, kernels)
    info.write(replace(contents.read(made), kernels=digest), made)


def call_of_signature(folder: Path, name: str, call: Call) -> tuple[Callable[..., Any], list[Any]]:
    """A signature of the model in a folder as a function, and its arguments."""
    loaded = load_model(folder)
    _names(loaded.signatures, call)  # says what is wrong with them
    signature = loaded.signatures[name]
    return _taking_a_dict(signature), [_arguments(_specs(signature), call, call.size)]


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
    given = _arguments(_specs(signature), call, call.size)
    found = compared(_taking_a_dict(signature), name, [given], call.terms)
    if found.report.is_gain:
        _call_at_other_sizes(found, _specs(signature), call)
    return found.report


def _arguments(
    specs: Mapping[str, Any], call: Call, size: int | Callable[[int], int]
) -> dict[str, Any]:
    """The inputs of a signature: as given, or drawn with `size`."""
    return {
        key: tf.convert_to_tensor(call.inputs[key], spec.dtype)
        if key in call.inputs
        else drawing.drawn(spec, size)
        for key, spec in specs.items()
    }


def _call_at_other_sizes(found: Accelerated, specs: Mapping[str, Any], call: Call) -> None:
    """Has kernels made for dims that vary, where no input that is given has one."""
    varying = {key for key, spec in specs.items() if not spec.shape.is_fully_defined()}
    if not varying or varying & set(call.inputs):
        return
    for size in drawing.others(call.size):
        given = _arguments(specs, call, size)
        try:
            settled(found, [given], call.terms.end())
        except tf.errors.OpError as error:  # a model of one size only
            logger.info("%s: no kernels of other sizes: %s", found.report.name, error.message)
            return


def _taking_a_dict(signature: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda inputs: signature(**inputs)
